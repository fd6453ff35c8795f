// Stands in for imap-emails, by which NDNts' @ndn/ndncert reads a mailbox for the challenge email.
//
// No case here reads mail, and the real package brings 36 more, with parsers of mail and HTML.
export class ImapEmails {
  constructor() {
    throw new Error("there is no mail here");
  }
}
