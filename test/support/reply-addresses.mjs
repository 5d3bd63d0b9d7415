const HEADER_OCTETS = 12

/** Returns the addresses of the A records in the answer section of a reply. */
export function addressesOf(reply) {
  const found = []
  let at = skipName(reply, HEADER_OCTETS) + 4
  for (let i = reply.readUInt16BE(6); i > 0; i--) {
    at = skipName(reply, at)
    const octets = reply.readUInt16BE(at + 8)
    if (reply.readUInt16BE(at) === 1) found.push(reply.subarray(at + 10, at + 14).join('.'))
    at += 10 + octets
  }
  return found
}

function skipName(reply, start) {
  let at = start
  while (reply[at] !== 0 && reply[at] < 0xc0) at += reply[at] + 1
  return at + (reply[at] === 0 ? 1 : 2)
}
