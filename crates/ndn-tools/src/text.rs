//! Numbers and packets as the C++ of ndn-tools and ndn-cxx prints them.

use namewire_packet::{Data, Interest, signature::signature_type};

/// InterestLifetime that an Interest without the element has, in milliseconds (packet specification, Interest).
const LIFETIME_MS_DEFAULT: u64 = 4000;
/// Significant digits of a number.
const DIGITS: i32 = 6;

/// A number with six significant digits, and no zeros at its end: what `printf` calls `%g`.
pub(crate) fn number(value: f64) -> String {
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    match scientific.split_once('e').map(|(mantissa, exponent)| (mantissa, exponent.parse::<i32>())) {
        Some((_, Ok(exponent))) if (-4..DIGITS).contains(&exponent) => {
            trimmed(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize))
        }
        Some((mantissa, Ok(exponent))) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
        }
        _ => value.to_string(),
    }
}

/// `/name?CanBePrefix&Nonce=01020304`.
pub(crate) fn interest(interest: &Interest<'_>) -> String {
    let mut fields = Vec::new();
    if interest.can_be_prefix() {
        fields.push("CanBePrefix".to_owned());
    }
    if interest.must_be_fresh() {
        fields.push("MustBeFresh".to_owned());
    }
    fields.extend(interest.nonce().map(|nonce| format!("Nonce={nonce}")));
    if interest.lifetime_ms() != LIFETIME_MS_DEFAULT {
        fields.push(format!("Lifetime={}", interest.lifetime_ms()));
    }
    fields.extend(interest.hop_limit().map(|limit| format!("HopLimit={limit}")));
    let delimiter = if fields.is_empty() { "" } else { "?" };
    format!("{}{delimiter}{}", interest.name(), fields.join("&"))
}

/// A Data packet in four lines.
pub(crate) fn data(data: &Data<'_>) -> String {
    let mut meta = vec![format!("ContentType: {}", data.content_type())];
    if data.freshness_ms() > 0 {
        meta.push(format!("FreshnessPeriod: {} milliseconds", data.freshness_ms()));
    }
    meta.extend(data.final_block_id().map(|last| format!("FinalBlockId: {last}")));
    let signature = match data.signature_info().signature_type() {
        signature_type::DIGEST_SHA256 => "DigestSha256".to_owned(),
        signature_type::SHA256_RSA => "SignatureSha256WithRsa".to_owned(),
        signature_type::SHA256_ECDSA => "SignatureSha256WithEcdsa".to_owned(),
        signature_type::HMAC_SHA256 => "SignatureHmacWithSha256".to_owned(),
        signature_type::ED25519 => "SignatureEd25519".to_owned(),
        signature_type::NULL => "NullSignature".to_owned(),
        other => format!("Unknown({other})"),
    };
    format!(
        "Name: {}\nMetaInfo: [{}]\nContent: [{} bytes]\nSignature: [type: {signature}, length: {}]\n",
        data.name(),
        meta.join(", "),
        data.content().len(),
        data.signature_value().len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::InterestBuilder;

    #[test]
    fn numbers_have_six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (100.0, "100"),
            (1.0 / 3.0, "0.333333"),
            (33.0 + 1.0 / 3.0, "33.3333"),
            (0.104_217, "0.104217"),
            (0.000_012_34, "1.234e-05"),
            (123_456.7, "123457"),
            (999_999.9, "1e+06"),
            (12_345_678.0, "1.23457e+07"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn an_interest_shows_what_is_not_usual() {
        let name: namewire_packet::NameBuf = "/a".parse().unwrap();
        let text = |builder: InterestBuilder| interest(&Interest::parse(&builder.build()).unwrap());
        assert_eq!(text(InterestBuilder::new(name.clone())), "/a");
        let builder = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true).lifetime_ms(1).hop_limit(2);
        assert_eq!(text(builder), "/a?CanBePrefix&MustBeFresh&Lifetime=1&HopLimit=2");
    }
}
