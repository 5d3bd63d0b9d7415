import { join } from 'node:path'
import type { Test } from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { lowerName } from '../../../src/dns/name/name.ts'
import { nameOctetsAt } from '../../../src/dns/name/name-at.ts'
import { file } from '../../../src/plugins/file/setup.ts'
import { TYPES } from '../../conformance/dnssec/zones.ts'
import { backdate } from '../../support/backdate.ts'
import { FixedSigning } from '../../support/fixed-signing.ts'
import { putFile } from '../../support/server.ts'
import { SetUp } from '../../support/setup.ts'
import { type SigningOptions, signZone } from '../../support/signed-zone.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { type Shown, show, transaction } from '../../support/transaction.ts'

const ZONE = 'example.org'

/** Our policy, and the same for dnssec-signzone. */
export const DENIALS = {
  NSEC: { policy: { denial: 'nsec' }, nsec3: undefined },
  NSEC3: { policy: { denial: 'nsec3' }, nsec3: { salt: '-', iterations: 0, optOut: false } },
  'NSEC3 with opt-out': {
    policy: { denial: 'nsec3', optOut: true },
    nsec3: { salt: '-', iterations: 0, optOut: true },
  },
} as const

/** An answer without what keys, times and the serial decide. */
function essence({ status, flags, answer, authority, additional }: Shown): string[] {
  const sections = [answer, authority, additional].map((lines) => lines.map(withoutKeys).sort())
  return [`${status} ${flags}`, ...sections.flatMap((lines) => ['--', ...lines])]
}

function withoutKeys(line: string): string {
  const [owner, ttl, rrclass, type, rdata = ''] = line.split(' ')
  const fixed = [owner, ttl, rrclass, type].join(' ')
  // Type, algorithm, labels and TTL of a signature.
  if (type === 'RRSIG') return `${fixed} ${rdata.slice(0, 16)}`
  if (type === 'DNSKEY') return `${fixed} ${rdata.slice(0, 8)}`
  if (type === 'SOA') return `${fixed} ${rdata.slice(0, -40)} ${rdata.slice(-32)}`
  return `${fixed} ${type === 'NSEC' ? withLowerNext(rdata) : rdata}`
}

/** The case of the next name does not matter, and signatures cover it as it is (RFC 6840 section 5.1). */
function withLowerNext(hex: string): string {
  const rdata = Buffer.from(hex, 'hex')
  const end = nameOctetsAt(rdata, 0)
  return Buffer.concat([lowerName(rdata.subarray(0, end)), rdata.subarray(end)]).toString('hex')
}

async function start(
  t: Test,
  text: string,
  directory: string,
  signing?: FixedSigning,
): Promise<SetUp> {
  const name = signing === undefined ? 'signed' : 'plain'
  putFile(directory, name, text)
  backdate(directory)
  const directive = signing === undefined ? file : signing.around(file)
  const c = new SetUp(directive, `file ${join(directory, name)} ${ZONE}`, [`${ZONE}.`])
  c.clock.nowMs = Date.now()
  t.teardown(() => c.stop())
  await c.start()
  return c
}

/** Signs zones of example.org with dnssec-signzone and with our signer, and compares the answers. */
export class BindComparison {
  /** Answers that were compared. */
  asked = 0
  readonly #t: Test
  readonly #directory: string
  readonly #signing: FixedSigning
  readonly #nsec3: SigningOptions['nsec3']

  private constructor(t: Test, signing: FixedSigning, nsec3: SigningOptions['nsec3']) {
    this.#t = t
    this.#directory = temporaryDirectory(t)
    this.#signing = signing
    this.#nsec3 = nsec3
  }

  static async create(t: Test, denial: keyof typeof DENIALS): Promise<BindComparison> {
    const { policy, nsec3 } = DENIALS[denial]
    const signing = new FixedSigning(policy)
    await signing.makeSplitKeys()
    return new BindComparison(t, signing, nsec3)
  }

  /** @throws Error with the first answer that differs. */
  async compare(text: string, names: readonly string[]): Promise<void> {
    const args = ['-x', '-T', '3600', '-n', '1']
    const nsec3 = this.#nsec3
    const options = { zone: ZONE, text, algorithm: 'ECDSAP256SHA256', nsec3, args } as const
    const { text: signed } = await signZone(join(this.#directory, 'bind'), options)
    const theirs = await start(this.#t, signed, this.#directory)
    const ours = await start(this.#t, text, this.#directory, this.#signing)
    for (const name of names) {
      for (const type of TYPES) {
        const question = { name, type: RRType[type], dnssecOk: true, payloadOctets: 4096 }
        const [expected, found] = [theirs, ours].map((c) =>
          show(c.handler(), transaction(question)),
        )
        const [want, have] = [essence(await expected!), essence(await found!)]
        this.asked++
        if (want.join('\n') === have.join('\n')) continue
        const replies = `BIND's:\n${want.join('\n')}\nours:\n${have.join('\n')}`
        throw new Error(`${name} ${type}\nzone:\n${text}\n${replies}`)
      }
    }
    await theirs.stop()
    await ours.stop()
  }
}
