const TTL_SECONDS = 60
const TEXT_OCTETS_MAX = 255

/**
 * `motd TEXT`: a message of the day, as TXT of every name. Other queries go to the next directive.
 *
 * @type {import('sextant/plugin').Plugin}
 */
export default ({ Rcode, RRClass, RRType, Section }, name) => ({
  setup({ dispenser }) {
    let text = Buffer.alloc(0)
    while (dispenser.next()) text = Buffer.from(dispenser.onlyArg())
    if (text.length > TEXT_OCTETS_MAX) {
      throw dispenser.error(`the text has ${text.length} octets; use at most ${TEXT_OCTETS_MAX}`)
    }
    // A string of TXT has its length in front (RFC 1035 section 3.3.14).
    const rdata = Uint8Array.of(text.length, ...text)
    const handler = (next) => ({
      name,
      serve(tx) {
        const { query, response } = tx
        if (query.qtype !== RRType.TXT) return next.serve(tx)
        response.authoritative = true
        response.rcode = Rcode.NOERROR
        const { qname, qtype } = query
        response.add(Section.Answer, qname, 0, qtype, RRClass.IN, TTL_SECONDS, rdata, 0, rdata.length)
        return Rcode.NOERROR
      },
    })
    return { handler, answers: true }
  },
})
