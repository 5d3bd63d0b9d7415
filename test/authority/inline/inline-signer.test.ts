import fc from 'fast-check'
import t from 'tap'
import { InlineSigner, type SignedVersion } from '../../../src/authority/inline/inline-signer.ts'
import { signedSerial } from '../../../src/authority/inline/signed-serial.ts'
import { copyVersion } from '../../../src/authority/inline/signed-snapshot.ts'
import { InputError } from '../../../src/base/errors.ts'
import { RRType } from '../../../src/dns/iana/index.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import type { SetKey } from '../../../src/xfr/zone-versions.ts'
import type { ZoneId } from '../../../src/zone/image/types.ts'
import type { ZoneImage } from '../../../src/zone/image/writer.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { runs } from '../../support/runs.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-text.ts'
import { imageOf, printView } from '../../support/zone-version.ts'

const ZONE = wire('example.org.')
const SECONDS = 1000

const text = (serial: number, records: string): string =>
  `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n${records}\n`

/** Signs by putting a DNSKEY record with the number of RRsets that were noted. */
class FakeSigner {
  refusal = ''
  isDue = false
  readonly state = { made: 0, reused: 0, expiresSeconds: undefined }
  noted: string[] = []
  published = 0
  isClosed = false
  /** Makes `sign` wait until it is called. */
  finish: (() => void) | undefined
  fault: Error | undefined
  isSlow = false
  readonly #image: ZoneImage
  readonly #zone: ZoneId
  readonly #onChanged: (owner: Uint8Array, type: number) => void
  #listener = (): void => {}

  constructor(
    image: ZoneImage,
    zone: ZoneId,
    onChanged: (owner: Uint8Array, type: number) => void,
  ) {
    this.#image = image
    this.#zone = zone
    this.#onChanged = onChanged
  }

  note(owner: Uint8Array, type: number): void {
    this.noted.push(`${printName(owner)} ${type}`)
  }

  noteAll(): void {
    // What is signed already stays.
  }

  notePublished(): void {
    this.published++
  }

  onDue(listener: () => void): () => void {
    this.#listener = listener
    return () => {}
  }

  /** A refresh, or other keys. */
  fire(): void {
    this.isDue = true
    this.#listener()
  }

  close(): void {
    this.isClosed = true
  }

  sign(): Promise<void> | undefined {
    if (this.fault !== undefined) throw this.fault
    if (!this.isSlow) {
      this.#put()
      return undefined
    }
    return new Promise((resolve) => {
      this.finish = () => {
        this.#put()
        resolve()
      }
    })
  }

  #put(): void {
    const owner = wire('example.org.')
    const rdata = [new Uint8Array([1, 1, 3, 13, this.noted.length])]
    if (this.noted.length > 0 || this.isDue) {
      const data = { type: RRType.DNSKEY, ttlSeconds: 0, rdata }
      if (this.#image.putRRset(this.#zone, owner, data)) this.#onChanged(owner, data.type)
    }
    this.noted = []
    this.isDue = false
  }
}

function start(resume: () => Promise<SignedVersion | undefined> = async () => undefined) {
  const { log, lines } = recordLog()
  const clock = new FakeClock()
  clock.nowMs = Date.UTC(2026, 1)
  const timers = new FakeTimers()
  const signers: FakeSigner[] = []
  let published = 0
  const signer: InlineSigner = new InlineSigner({
    zone: ZONE,
    ...{ clock, timers, log },
    resume,
    createSigner: (image, zone, onChanged) => {
      const made = new FakeSigner(image, zone, onChanged)
      signers.push(made)
      return made
    },
    onPublish: () => published++,
  })
  const take = async (serial: number, records: string, changed?: SetKey[]): Promise<void> => {
    const { version } = imageOf(text(serial, records), 'example.org.')
    await signer.take(version, changed)
  }
  return { signer, signers, take, lines, clock, timers, published: () => published }
}

/** What is served, without the SOA and what the signer made. */
function content({ captured, serial }: InlineSigner): string[] {
  if (captured === undefined) return []
  const { buffer, version: imageVersion } = captured
  const view = VersionView.open({ zone: ZONE, serial, buffer, imageVersion })!
  const lines = [...view.content()].map(printView)
  return lines.filter((line) => !line.includes(' DNSKEY ')).sort()
}

const RECORDS = ['example.org. 60 NS ns.example.org.', 'ns.example.org. 60 A 192.0.2.1']

t.test('a version is signed and served; later ones change only what differs', async (t) => {
  const { signer, signers, take, published } = start()
  await take(1, 'a 60 A 192.0.2.2\nb 60 A 192.0.2.3')
  t.strictSame(content(signer), [
    'a.example.org. 60 A 192.0.2.2',
    'b.example.org. 60 A 192.0.2.3',
    ...RECORDS,
  ])
  t.equal(signer.changed, undefined, 'all is new')
  const [first] = signers
  const before = signer.serial
  const noted: string[] = []
  first!.note = (owner, type) => noted.push(`${printName(owner)} ${type}`)
  await take(2, 'a 60 A 192.0.2.9\nc 60 A 192.0.2.3')
  t.strictSame(content(signer), [
    'a.example.org. 60 A 192.0.2.9',
    'c.example.org. 60 A 192.0.2.3',
    ...RECORDS,
  ])
  const sets = ['a.example.org. 1', 'c.example.org. 1', 'b.example.org. 1', 'example.org. 6']
  t.strictSame(noted.sort(), sets.sort())
  const changed = new Set(signer.changed!.map(({ owner, type }) => `${printName(owner)} ${type}`))
  for (const set of sets.slice(0, 3)) t.ok(changed.has(set) || set.endsWith(' 6'), set)
  t.equal(signer.serial, before + 1)
  t.equal(signers.length, 1)
  t.equal(published(), 2)
  t.equal(first!.published, 2)
})

const keyAt = (name: string, type: number = RRType.A): SetKey => {
  return { owner: wire(`${name}.example.org.`), type }
}

t.test('if the changes are known, no other names are visited', async (t) => {
  const { signer, take } = start()
  const lines = Array.from({ length: 1000 }, (_, i) => `n${i} 60 A 192.0.2.1`)
  await take(1, lines.join('\n'))
  const visits = t.capture(VersionView.prototype, 'owner', VersionView.prototype.owner)
  const edited = [...lines.slice(0, 999), 'new 60 A 192.0.2.3'].join('\n')
  await take(2, edited, [keyAt('n999'), keyAt('new')])
  t.equal(visits().length, 0)
  t.equal(signer.sourceSerial, 2)
  const served = content(signer).filter((line) => !/^n\d/.test(line))
  t.strictSame(served, [RECORDS[0], 'new.example.org. 60 A 192.0.2.3', RECORDS[1]])
  await take(3, edited)
  t.ok(visits().length > 1000, 'if they are not known, all are visited')
})

t.test('known changes are checked, and a fault makes all be visited', async (t) => {
  const rows: readonly (readonly [line: string, type: number, fault: RegExp])[] = [
    ['a 60 NSEC b A NSEC', RRType.NSEC, /signed already/],
    ['*.a 60 NS b.example.com.', RRType.NS, /cannot be signed/],
    [
      Array.from({ length: 249 }, (_, i) => `a 60 TYPE${i + 1000} \\# 1 00`).join('\n'),
      1000,
      /more than 248 types/,
    ],
  ]
  for (const [lines, type, fault] of rows) {
    const { signer, take } = start()
    await take(1, 'x 60 A 192.0.2.2')
    const key = keyAt(lines.split(' ')[0]!, type)
    await take(2, `y 60 A 192.0.2.2\n${lines}`, [key, keyAt('x'), keyAt('y')])
    t.match(signer.fault, fault)
    t.match(content(signer)[2], /^x\./)
    const visits = t.capture(VersionView.prototype, 'owner', VersionView.prototype.owner)
    await take(3, 'y 60 A 192.0.2.2', [key])
    t.ok(visits().length > 0, 'all are visited')
    visits.restore()
    t.equal(signer.fault, '')
    t.strictSame(content(signer), [...RECORDS, 'y.example.org. 60 A 192.0.2.2'])
  }
})

/** Last octet of the address of each of five names; 0 = the name has none. */
const addresses = fc.array(fc.nat(2), { minLength: 5, maxLength: 5 })
const steps = fc.array(
  fc.record({
    addresses,
    isKnown: fc.boolean(),
    kind: fc.constantFrom('fast', 'fast', 'slow', 'finish', 'fault', 'refused', 'drop'),
  }),
  { maxLength: 8 },
)

t.test('whatever happens, the content is that of the last version', async (t) => {
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  await fc.assert(
    fc.asyncProperty(steps, addresses, async (all, last) => {
      const { signer, signers, take } = start()
      let before: readonly number[] = []
      let serial = 0
      const put = async (now: readonly number[], isKnown: boolean): Promise<void> => {
        const lines = now.flatMap((one, i) => (one === 0 ? [] : [`n${i} 60 A 192.0.2.${one}`]))
        const differing = now.flatMap((one, i) => (one === before[i] ? [] : [keyAt(`n${i}`)]))
        before = now
        await take(++serial, lines.join('\n'), isKnown ? differing : undefined)
      }
      for (const { addresses: now, isKnown, kind } of all) {
        const fake = signers.at(-1)
        if (fake !== undefined) {
          fake.isSlow = kind === 'slow'
          fake.fault = kind === 'fault' ? new Error('a fault') : undefined
          fake.refusal = kind === 'refused' ? 'no keys' : ''
        }
        if (kind === 'drop') signer.drop()
        if (kind === 'finish') fake?.finish?.()
        await put(now, isKnown)
      }
      for (const fake of signers)
        Object.assign(fake, { isSlow: false, fault: undefined, refusal: '' })
      for (const fake of signers) fake.finish?.()
      await settle()
      await put(last, true)
      await settle()
      const want = last.flatMap((one, i) => {
        return one === 0 ? [] : [`n${i}.example.org. 60 A 192.0.2.${one}`]
      })
      t.strictSame(content(signer), [RECORDS[0], ...want, RECORDS[1]])
      t.equal(signer.sourceSerial, serial)
    }),
    { numRuns: runs(300) },
  )
})

t.test('a refresh makes a version with another serial; equal content makes none', async (t) => {
  const { signer, signers, take, published, clock } = start()
  await take(7, 'a 60 A 192.0.2.2')
  const { serial } = signer
  await take(7, 'a 60 A 192.0.2.2')
  t.equal(published(), 1, 'the same content, read again')
  clock.pass(1000 * SECONDS)
  signers[0]!.fire()
  await take(7, 'a 60 A 192.0.2.2')
  t.equal(signer.serial, serial + SECONDS - 1, 'the first one is a second ahead')
  t.equal(published(), 2)
})

t.test('what cannot be signed is held back, and published later', async (t) => {
  const { signer, signers, take, published, lines, timers } = start()
  await take(1, 'a 60 A 192.0.2.2')
  const [fake] = signers
  fake!.refusal = 'it has no keys'
  await take(2, 'b 60 A 192.0.2.2')
  t.equal(published(), 1)
  t.match(content(signer), [/^a\./, /./, /./])
  t.match(
    lines.at(-1),
    /zone example.org. can't be signed, so its last signed version is served: it has no keys$/,
  )
  fake!.refusal = ''
  fake!.fault = new InputError(undefined, 'the clock is wrong')
  await take(3, 'c 60 A 192.0.2.2')
  t.equal(published(), 1)
  t.match(signer.problem, /the clock is wrong/)
  fake!.fault = undefined
  await take(4, 'd 60 A 192.0.2.2')
  t.strictSame(
    content(signer),
    ['d.example.org. 60 A 192.0.2.2', ...RECORDS],
    'nothing of the others',
  )
  t.match(lines.at(-1), /can be signed/)
  fake!.refusal = 'it has no keys'
  await take(5, 'e 60 A 192.0.2.2')
  fake!.refusal = ''
  t.match(content(signer)[0], /^d/)
  await timers.advance(60_000)
  for (let i = 0; i < 1000 && published() < 3; i++) await new Promise(setImmediate)
  t.match(content(signer)[0], /^e/, 'tried again')
})

t.test('a zone without changes reports that it cannot be signed', async (t) => {
  const { signer, signers, take, published, lines, timers } = start()
  await take(1, 'a 60 A 192.0.2.2')
  signer.check()
  t.equal(signer.fault, '')
  signers[0]!.refusal = 'the clock jumped'
  signer.check()
  signer.check()
  t.match(signer.problem, /its last signed version is served: the clock jumped$/)
  t.equal(lines.filter((line) => /the clock jumped/.test(line)).length, 1)
  signers[0]!.refusal = ''
  await timers.advance(60_000)
  await until(() => signer.fault === '', 'the end of the fault')
  t.equal(published(), 1, 'the version is the same')
})

t.test('signatures that take long: the last version is served meanwhile', async (t) => {
  const { signer, signers, take, published } = start()
  await take(1, 'a 60 A 192.0.2.2')
  const [fake] = signers
  fake!.isSlow = true
  await take(2, 'b 60 A 192.0.2.2')
  await take(3, 'c 60 A 192.0.2.2')
  t.equal(published(), 1)
  t.match(content(signer)[0], /^a\./)
  const { finish } = fake!
  fake!.isSlow = false
  finish!()
  for (let i = 0; i < 1000 && published() < 3; i++) await new Promise(setImmediate)
  t.match(content(signer)[0], /^c\./)
  t.equal(signer.sourceSerial, 3)
})

t.test('a restart continues what was served', async (t) => {
  const before = start()
  await before.take(5, 'a 60 A 192.0.2.2')
  const resume = () => copyVersion(before.signer.captured!, before.signer, before.clock)
  const same = start(resume)
  same.clock.pass(60_000)
  await same.take(5, 'a 60 A 192.0.2.2')
  t.equal(same.published(), 1)
  t.strictSame(content(same.signer), content(before.signer))
  const other = start(resume)
  await other.take(6, 'b 60 A 192.0.2.2')
  t.strictSame(content(other.signer), ['b.example.org. 60 A 192.0.2.2', ...RECORDS])
  t.ok(other.signer.serial > before.signer.serial)
  t.equal(other.published(), 2, 'the version before is served first')
})

t.test('a signed version is refused', async (t) => {
  const { signer, take, lines } = start()
  await take(1, 'a 60 NSEC b A NSEC')
  t.strictSame(content(signer), [])
  t.match(
    lines[0],
    /so queries get SERVFAIL: the zone is signed already \(a.example.org. NSEC\), but `dnssec` signs it; remove/,
  )
})

t.test('a version with a name that has no room for signatures is refused', async (t) => {
  const { signer, take, lines } = start()
  const types = Array.from({ length: 249 }, (_, i) => `a 60 TYPE${i + 1000} \\# 1 00`)
  await take(1, types.join('\n'))
  t.match(signer.fault, /^a\.example\.org\. has more than 248 types, so it has no room/)
  t.equal(lines.length, 1)
  await take(2, types.slice(1).join('\n'))
  t.equal(signer.fault, '')
})

t.test('a version with NS of a wildcard is refused', async (t) => {
  const { signer, take } = start()
  await take(1, '*.a 60 NS b.example.com.')
  t.match(signer.fault, /^\*\.a\.example\.org\. NS: NS of a wildcard cannot be signed; use NS/)
  await take(2, 'a 60 NS b.example.com.')
  t.equal(signer.fault, '')
})

t.test('an unforeseen fault is reported, and tried again', async (t) => {
  const { signer, signers, take, lines, timers, published } = start()
  await take(1, 'a 60 A 192.0.2.2')
  signers[0]!.fault = new Error('the thread that signs ended early')
  await take(2, 'b 60 A 192.0.2.2')
  t.match(signer.problem, /example\.org\. can't be signed, .*: the thread that signs ended early/)
  t.match(lines.join('\n'), /can't be signed, so its last signed version is served: the thread/)
  t.match(content(signer)[0], /^a/)
  signers[0]!.fault = undefined
  await timers.advance(60_000)
  for (let i = 0; i < 1000 && published() < 2; i++) await new Promise(setImmediate)
  t.match(content(signer)[0], /^b/)
})

t.test('the source expires, and returns', async (t) => {
  const { signer, signers, take } = start()
  await take(1, 'a 60 A 192.0.2.2')
  signer.drop()
  t.equal(signer.shared, undefined)
  t.ok(signers[0]!.isClosed)
  await take(1, 'a 60 A 192.0.2.2')
  t.match(content(signer)[0], /^a\./)
})

t.test('serials', (t) => {
  const second = 1_767_225_600
  const cases: readonly (readonly [number, number, number | undefined, number])[] = [
    [1, second, undefined, 2],
    [1, second + 2, undefined, 4],
    [1, second - 2, undefined, 2],
    [2026113001, second + 1, undefined, 2026113003],
    // A restart in the second of the last version, which has other signatures.
    [7, second + 2, 3, 9],
    [7, second + 2, undefined, 10],
    [1, second, 1, 2],
    [1, second, 900, 901],
    [0xffff_ffff, second, undefined, 1],
    [0xffff_ffff, second + 2, 0xffff_ffff, 1],
    [5, second, 0xffff_ffff, 5],
  ]
  for (const [source, now, previous, serial] of cases) {
    t.equal(signedSerial(source, now, previous), serial, `${source} ${now} ${previous}`)
  }
  t.end()
})
