//! Which router is near? The stages of ndn-autoconfig that need no DNS, and an FCH answer.
//!
//! * A host on the same link answers `/localhop/ndn-autoconf/hub` (ndn-autoconfig-server): its Data has the face URI of
//!   a router. The question goes to every multicast face.
//! * FCH (Find Closest Hub) answers by HTTP with a host name, or with several separated by commas. The user gives the
//!   answer as a file, or its URL.
//!
//! Limits: [`PATIENCE`] for an answer; an FCH answer has at most [`FCH_BYTES_MAX`].

use namewire_client::{Client, InterestBuilder};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{FaceStatus, LinkType},
    tlv::Reader,
};
use std::{io, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Longest FCH answer, with the head of the HTTP message.
pub const FCH_BYTES_MAX: u64 = 16 << 10;
/// Uri, as in the face datasets of NFD.
const URI: u32 = 114;
const HUB: &str = "/localhop/ndn-autoconf/hub";
const QUESTION_LIFETIME_MS: u64 = 1000;

/// Why there is no router.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// Nobody on the links answers.
    #[error(
        "no router answers on the {0} multicast faces (`namewire run --multicast` makes them); give its address, or --fch"
    )]
    Silent(usize),
    /// The file or URL.
    #[error("{0}: {1}")]
    Fch(String, String),
    /// This router does not say which faces it has.
    #[error("the faces of this router: {0}")]
    Faces(String),
}

/// Asks on every multicast face for a router.
///
/// # Errors
/// If none answers.
pub async fn on_the_links(client: &Client) -> Result<String, DiscoverError> {
    let faces: Vec<FaceStatus> = client.list().await.map_err(|error| DiscoverError::Faces(error.to_string()))?;
    let multicast: Vec<FaceId> =
        faces.iter().filter(|face| face.link_type == LinkType::MultiAccess).map(|face| face.face_id).collect();
    // The choice of a face needs the local fields; without them nothing is asked.
    client.use_local_fields().await.map_err(|error| DiscoverError::Faces(error.to_string()))?;
    let name: NameBuf = HUB.parse().expect("a name in the source is well-formed");
    let question = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true).lifetime_ms(QUESTION_LIFETIME_MS);
    for face in &multicast {
        if let Ok(answer) = client.express_by(&question, *face).await
            && let Some(uri) = uri_in(answer.data().content())
        {
            return Ok(uri);
        }
    }
    Err(DiscoverError::Silent(multicast.len()))
}

fn uri_in(content: &[u8]) -> Option<String> {
    let mut reader = Reader::new(content);
    while let Ok(Some(element)) = reader.next_element() {
        if element.type_number == URI {
            return String::from_utf8(element.value.to_vec()).ok();
        }
    }
    None
}

/// The router in an FCH answer: a file, or an `http://` URL.
///
/// # Errors
/// If there is none.
pub async fn by_fch(place: &str) -> Result<String, DiscoverError> {
    let failed = |why: &dyn std::fmt::Display| DiscoverError::Fch(place.to_owned(), why.to_string());
    let text = match place.strip_prefix("http://") {
        Some(rest) => match timeout(PATIENCE, fetch(rest)).await {
            Ok(fetched) => fetched.map_err(|error| failed(&error))?,
            Err(_) => return Err(failed(&"no answer")),
        },
        None if place.starts_with("https://") => {
            return Err(failed(&"only http:// URLs and files; fetch it by another program, and give the file"));
        }
        None => {
            let bytes = namewire_configuration::input_file::read(Path::new(place), FCH_BYTES_MAX);
            String::from_utf8_lossy(&bytes.map_err(|error| failed(&error))?).into_owned()
        }
    };
    let host = text.trim().split(',').next().unwrap_or_default().trim();
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(failed(&"it names no host"));
    }
    Ok(format!("udp://{host}"))
}

/// The body of an HTTP answer.
async fn fetch(rest: &str) -> io::Result<String> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {authority}\r\nAccept: text/plain\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(FCH_BYTES_MAX).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("no HTTP answer"))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(format!("the answer is {status}")));
    }
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::tlv::write_tlv;

    #[test]
    fn the_answer_of_a_hub_has_a_uri() {
        let mut content = Vec::new();
        write_tlv(&mut content, 200, b"other");
        write_tlv(&mut content, URI, b"udp4://192.0.2.1:6363");
        assert_eq!(uri_in(&content), Some("udp4://192.0.2.1:6363".to_owned()));
        assert_eq!(uri_in(b"garbage"), None);
    }

    #[tokio::test]
    async fn an_fch_answer_is_a_file_or_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fch");
        std::fs::write(&path, "hobo.cs.example.edu,other.example.org\n").unwrap();
        assert_eq!(by_fch(path.to_str().unwrap()).await.unwrap(), "udp://hobo.cs.example.edu");
        std::fs::write(&path, "<html>").unwrap();
        assert!(by_fch(path.to_str().unwrap()).await.is_err());

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/?k=1", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1000];
            let read = stream.read(&mut request).await.unwrap();
            assert!(request[..read].starts_with(b"GET /?k=1 HTTP/1.0\r\n"));
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhub.example.net").await.unwrap();
        });
        assert_eq!(by_fch(&url).await.unwrap(), "udp://hub.example.net");
        serving.await.unwrap();
    }
}
