import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import type { Response } from '../../../src/dns/message/response.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { isSubdomain, printName, scanName } from '../../../src/dns/name/name.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { ServerView, Transaction } from '../../../src/plugin/transaction.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { file } from '../../../src/plugins/file/setup.ts'
import { ZONE_SIGNING } from '../../../src/signing/registry.ts'
import { writeKey } from '../../plugins/dnssec/stage.ts'
import { faultsOf } from '../../support/response-validator.ts'
import { putFile } from '../../support/server.ts'
import { type FakeClock, SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { lonelyServer, type Question, refill, transaction } from '../../support/transaction.ts'
import { wire } from '../../support/zone-text.ts'
import { namesOf, TYPES, ZONES } from './zones.ts'

// Long: it validates tens of thousands of answers.

/* Each answer of a zone that `dnssec` signs, validated without our code of denial, and compared with the unsigned zone. */

const APEX = wire('example.org.')
const DENIALS = ['nsec', 'nsec3', 'nsec3 opt-out', 'compact']

async function start(t: Test, directive: Directive, corefile: string): Promise<SetUp> {
  const c = new SetUp(directive, corefile)
  t.teardown(() => c.stop())
  await c.start()
  return c
}

interface Served {
  readonly handler: Handler
  readonly dnskey: Uint8Array
  readonly clock: FakeClock
}

/** Serves a zone file below `dnssec`. */
async function serve(t: Test, zone: string, denial: string): Promise<Served> {
  const directory = temporaryDirectory(t)
  putFile(directory, 'zone', zone)
  const { path, key } = await writeKey(join(directory, 'keys'), 'example.org.')
  const lines = `key file ${path}\n denial ${denial}\n signatures_per_second 60000 60000`
  const above = await start(t, dnssec, `dnssec {\n ${lines}\n}`)
  const signed: Directive = {
    name: 'file',
    setup: (c) => {
      c.block.shared.provide(ZONE_SIGNING, above.block.shared.find(ZONE_SIGNING)!)
      return file.setup(c)
    },
  }
  const below = await start(t, signed, `file ${join(directory, 'zone')}`)
  return { handler: above.handler(below.handler()), dnskey: key.dnskey, clock: above.clock }
}

async function serveUnsigned(t: Test, zone: string): Promise<Handler> {
  const directory = temporaryDirectory(t)
  putFile(directory, 'zone', zone)
  return (await start(t, file, `file ${join(directory, 'zone')}`)).handler()
}

/** A server that has this chain only. */
function serverOf(handler: Handler): ServerView {
  const server: ServerView = {
    ...lonelyServer,
    lookupInternally: (_, qname, type) => {
      if (!isSubdomain(qname, APEX)) return undefined
      const tx = transaction({ name: printName(qname), type }, server)
      handler.serve(tx)
      return tx
    },
  }
  return server
}

const DENIAL_TYPES: readonly number[] = [RRType.RRSIG, RRType.NSEC, RRType.NSEC3]

/** The records that are not those of DNSSEC, sorted. */
function contentOf({ response }: Transaction): string {
  const lines: string[] = []
  for (let i = 0; i < response.count; i++) {
    if (DENIAL_TYPES.includes(response.type[i]!)) continue
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!)
    const owner = printName(response.ownerBytes[i]!, response.ownerOffset[i]!)
    const { section, ttlSeconds } = response
    const type = response.type[i]!
    // Signing raises the serial.
    if (type === RRType.SOA) rdata.fill(0, -20, -16)
    lines.push(
      `${section[i]} ${owner} ${ttlSeconds[i]} ${type} ${Buffer.from(rdata).toString('hex')}`,
    )
  }
  return lines.sort().join('\n')
}

/** Returns the proofs without which a validator accepts the reply, too. */
function unneededProofs(
  { count, section, type }: Response,
  validate: () => readonly string[],
): string[] {
  const unneeded: string[] = []
  for (let i = 0; i < count; i++) {
    const was = section[i]!
    if (was !== Section.Authority || (type[i] !== RRType.NSEC && type[i] !== RRType.NSEC3)) continue
    section[i] = Section.Additional + 1
    if (validate().length === 0) unneeded.push(`proof ${i} is not needed`)
    section[i] = was
  }
  return unneeded
}

/** Types that only a signed zone has. */
const MADE: readonly string[] = ['DNSKEY', 'NSEC', 'NSEC3PARAM', 'ANY']

for (const denial of DENIALS) {
  for (const [name, zone] of Object.entries(ZONES)) {
    t.test(`${denial}: ${name}`, async (t) => {
      const { handler, dnskey, clock } = await serve(t, zone, denial)
      const plain = await serveUnsigned(t, zone)
      const tx = transaction({ name: '.' }, serverOf(handler))
      const plainTx = transaction({ name: '.' })
      const faults: string[] = []
      let asked = 0
      for (const text of namesOf(zone)) {
        const name = scanName(text)
        if (name === undefined) continue
        for (const type of TYPES) {
          const question: Question = {
            ...{ name: text, type: RRType[type], tcp: true },
            ...{ dnssecOk: true, payloadOctets: 4096 },
          }
          asked++
          // So that signatures on demand are within the limit.
          clock.pass(10)
          const nowSeconds = Math.floor(clock.now() / 1000)
          handler.serve(refill(tx, question))
          const { query, response } = tx
          const own = { name: query.qname.slice(0, query.qnameOctets), type: RRType[type] }
          const found = faultsOf(response, own, { apex: APEX, dnskeys: [dnskey], nowSeconds })
          const without = () =>
            faultsOf(response, own, { apex: APEX, dnskeys: [dnskey], nowSeconds })
          if (type === 'A') found.push(...unneededProofs(response, without))
          plain.serve(refill(plainTx, question))
          const isSame =
            denial === 'compact' || MADE.includes(type) || response.rcode === plainTx.response.rcode
          if (!isSame) found.push(`rcode ${response.rcode}; unsigned ${plainTx.response.rcode}`)
          if (!MADE.includes(type) && contentOf(tx) !== contentOf(plainTx)) {
            found.push(`content:\n${contentOf(tx)}\nunsigned:\n${contentOf(plainTx)}`)
          }
          faults.push(...found.map((fault) => `${text} ${type}: ${fault}`))
        }
      }
      t.strictSame(faults.slice(0, 5), [])
      t.ok(asked > 50, `${asked} answers`)
    })
  }
}
