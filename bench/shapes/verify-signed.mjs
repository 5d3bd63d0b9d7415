// Verifies the signatures of some answers before they are measured, with the keys that the server answers.
import { createSocket } from 'node:dgram'
import { keyTag } from '../../dist/dns/dnssec/key-tag.js'
import { coveredType, signerOf, tagOf, verifySet } from '../../dist/dns/dnssec/rrsig.js'
import { RRType } from '../../dist/dns/iana/types.js'
import { parseMessage } from '../../dist/dns/message/parse-message.js'
import { equalNames, nameKey, printName } from '../../dist/dns/name/name.js'
import { composeQuery } from '../peers/packets.mjs'

const QUESTIONS = 20
const WAIT_MS = 2000
/** An authority section may have them without a signature: a referral. */
const UNSIGNED_AT_CUTS = [RRType.NS]

/** @throws Error if an answer is not signed, a signature is wrong, or the answers have another rcode. */
export async function verifySigned(server, port, { lines, form, rcode = 0 }) {
  const asked = lines()
  const keys = new Map()
  for (let i = 0; i < QUESTIONS; i++) {
    const line = asked[Math.floor((i * asked.length) / QUESTIONS)]
    const message = await ask(port, line, form)
    const fault = await faultOf(message, rcode, (zone) => keysOf(port, zone, keys))
    if (fault !== '') throw new Error(`${server.name}, ${line}: ${fault}`)
  }
}

async function faultOf(message, rcode, keysOfZone) {
  if (message === undefined) return 'no answer'
  if (message.rcode !== rcode) return `rcode ${message.rcode}`
  const records = [...message.answer, ...message.authority]
  const signatures = records.filter(({ type }) => type === RRType.RRSIG)
  if (signatures.length === 0) return 'no signature'
  const isSame = (a, b) => a.type === b.type && equalNames(a.owner, b.owner)
  for (const record of records) {
    const { owner, type } = record
    if (type === RRType.RRSIG) continue
    if (UNSIGNED_AT_CUTS.includes(type) && message.answer.length === 0) continue
    const text = `type ${type} of ${printName(owner)}`
    const of = ({ owner, rdata }) => coveredType(rdata) === type && equalNames(owner, record.owner)
    const signature = signatures.find(of)
    if (signature === undefined) return `no signature of ${text}`
    const rrset = records.filter((other) => isSame(other, record)).map(({ rdata }) => rdata)
    const set = { owner, type, ttlSeconds: record.ttlSeconds, rdata: rrset }
    const keys = await keysOfZone(signerOf(signature.rdata))
    const isSigned = keys.some((key) => {
      return keyTag(key) === tagOf(signature.rdata) && verifySet(set, signature.rdata, key)
    })
    if (!isSigned) return `wrong signature of ${text}`
  }
  return ''
}

async function keysOf(port, zone, known) {
  const key = nameKey(zone)
  if (!known.has(key)) {
    const { answer } = await ask(port, `${printName(zone).slice(0, -1)} DNSKEY`, 'do')
    const dnskeys = answer.filter(({ type }) => type === RRType.DNSKEY)
    known.set(
      key,
      dnskeys.map(({ rdata }) => rdata),
    )
  }
  return known.get(key)
}

async function ask(port, line, form) {
  const bytes = new Uint8Array(512)
  const [name, type] = line.split(' ')
  const octets = composeQuery(bytes, 0, { index: 1, name, type, form })
  const socket = createSocket('udp4')
  try {
    return await new Promise((resolve, reject) => {
      setTimeout(() => resolve(undefined), WAIT_MS).unref()
      socket.once('error', reject)
      socket.once('message', (reply) => resolve(parseMessage(reply)))
      socket.connect(port, '127.0.0.1', () => socket.send(bytes.subarray(0, octets)))
    })
  } finally {
    socket.close()
  }
}
