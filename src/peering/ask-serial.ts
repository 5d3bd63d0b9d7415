import { ask, questionOf } from '../client/ask.ts'
import type { HostPort } from '../dns/host-port.ts'
import { printRcode, Rcode, RRClass, RRType } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import { KDRNT_ZONE } from '../records/local-zone.ts'
import { soaSerial } from '../xfr/in/transfer-reader.ts'
import type { ZoneRecords } from '../zone/zonefile/records.ts'
import { cookieOption, readCookieTime } from './peer-clock.ts'

/** Wait for one reply, in milliseconds, and how often the question is sent. */
const QUESTION_MS = 1000
const QUESTION_TRIES = 2

interface AskSerialOptions {
  readonly key: TsigKey | undefined
  /** Source address of the queries; '' = any. */
  readonly source: string
  readonly signal: AbortSignal
}

/** The serial of a server's zone kdrnt, and the server's time of day; undefined = its reply has no time. */
interface AskedSerial {
  readonly serial: number
  readonly timeSeconds: number | undefined
}

/** Asks for the serial of a server's zone kdrnt. Returns a string with the reason if it fails. Never rejects. */
export async function askSerial(
  server: HostPort,
  options: AskSerialOptions,
): Promise<AskedSerial | string> {
  const cookie = cookieOption()
  const plain = questionOf(KDRNT_ZONE, RRType.SOA)
  const answered = await ask({
    server,
    query: { ...plain, edns: { ...plain.edns!, options: [cookie] } },
    timeoutMs: QUESTION_MS,
    tries: QUESTION_TRIES,
    ...options,
  })
  if (answered.kind === 'failed') return answered.reason
  const { rcode, answer, edns } = answered.message
  if (rcode !== Rcode.NOERROR)
    return `the peer answered ${printRcode(rcode)} to the SOA query for kdrnt`
  const soa = answer.find(({ type, rdata }) => type === RRType.SOA && rdata.length >= 22)
  if (soa === undefined) return 'the peer has no zone kdrnt'
  return { serial: soaSerial(soa), timeSeconds: readCookieTime(cookie, edns) }
}

/** Returns the SOA of a zone kdrnt from a full transfer. */
export function apexSoa(records: ZoneRecords): ResourceRecord | undefined {
  const node = records.find(KDRNT_ZONE, KDRNT_ZONE.length)
  for (
    let i = node === -1 ? -1 : records.firstRecord[node]!;
    i !== -1;
    i = records.nextRecord[i]!
  ) {
    if (records.type[i] !== RRType.SOA) continue
    const ttlSeconds = records.ttlSeconds[i]!
    const rdata = records.rdata(i).slice()
    return { owner: KDRNT_ZONE, type: RRType.SOA, rrclass: RRClass.IN, ttlSeconds, rdata }
  }
  return undefined
}
