import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../../../src/dns/iana/types.ts'
import { nameKey } from '../../../../src/dns/name/name.ts'
import type { OwnerSet } from '../../../../src/publish/build/owner-set.ts'
import type { RRsetSink } from '../../../../src/publish/build/record-zone-options.ts'
import { HeldSink } from '../../../../src/publish/zone/signing/held-sink.ts'
import { wire } from '../../../support/zone-names.ts'

const OWNERS = ['a', 'b', 'c', 'd'].map((label) => wire(`${label}.k.example.com.`))
const TYPES = [RRType.A, RRType.TXT]
/** The key of a declared name in a content. */
const DECLARED = 0

/** The texts of RRsets by owner and type. */
type Content = Map<string, string>

function keyOf(owner: Uint8Array, type: number): string {
  return `${nameKey(owner)} ${type}`
}

/** `text`: '' = all endpoints are down. */
function setOf(type: number, text: string): OwnerSet {
  const rdata = text === '' ? [] : [Buffer.from(text)]
  return { type, rdata } as unknown as OwnerSet
}

class Site {
  /** By owner and type; '' = all endpoints are down. */
  readonly records: Content = new Map()
  image: Content = new Map()
  #published: Content = new Map()
  isHolding = false
  readonly held: HeldSink

  constructor(notedMax: number) {
    const to: Required<RRsetSink> = {
      put: (owner, { type, rdata }) => this.image.set(keyOf(owner, type), String(rdata[0])),
      rename: (owner, set) => to.put(owner, set),
      remove: (owner, type) => this.image.delete(keyOf(owner, type)),
      declare: (owner, isDeclared) => {
        if (isDeclared) this.image.set(keyOf(owner, DECLARED), '')
        else this.image.delete(keyOf(owner, DECLARED))
      },
    }
    this.held = new HeldSink(
      () => to,
      () => this.isHolding,
      notedMax,
    )
  }

  /** As a RecordZone reports it. `text`: undefined = no record has the RRset. */
  change(owner: Uint8Array, type: number, text: string | undefined): void {
    const wasDeclared = this.#isDeclared(owner)
    const before = this.records.get(keyOf(owner, type))
    if (text === undefined) this.records.delete(keyOf(owner, type))
    else this.records.set(keyOf(owner, type), text)
    const isDeclared = this.#isDeclared(owner)
    if (isDeclared !== wasDeclared) this.held.declare(owner, isDeclared)
    if (text) this.held.put(owner, setOf(type, text))
    else if (before) this.held.remove(owner, type)
  }

  #isDeclared(owner: Uint8Array): boolean {
    return TYPES.some((type) => this.records.get(keyOf(owner, type)) === '')
  }

  publish(): void {
    this.release()
    this.#published = new Map(this.image)
    this.held.published()
  }

  release(): void {
    for (const _ of this.held.release({ setsOf: (only) => this.#setsOf(only) }));
  }

  takeBack(): void {
    this.image = new Map(this.#published)
    this.held.takenBack()
  }

  *#setsOf(only: Iterable<string> = OWNERS.map(nameKey)) {
    for (const key of only) {
      const sets = TYPES.flatMap((type) => {
        const text = this.records.get(`${key} ${type}`)
        return text === undefined ? [] : setOf(type, text)
      })
      yield [key, sets] as const
    }
  }

  /** What the image should have. */
  wanted(): Content {
    const declared = OWNERS.filter((owner) => this.#isDeclared(owner))
    return new Map([
      ...[...this.records].filter(([, text]) => text !== ''),
      ...declared.map((owner) => [keyOf(owner, DECLARED), ''] as const),
    ])
  }
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(
      fc.constantFrom(...OWNERS),
      fc.constantFrom(...TYPES),
      fc.constantFrom('', 'x', 'y', undefined),
    ),
  },
  { weight: 3, arbitrary: fc.constantFrom('hold', 'publish', 'take back') },
)

t.test('what was held or taken back is put again, whatever happened', async (t) => {
  const steps = fc.array(step, { maxLength: 30 })
  fc.assert(
    fc.property(fc.constantFrom(0, 2, 100), steps, (notedMax, all) => {
      const site = new Site(notedMax)
      for (const one of all) {
        if (one === 'hold') site.isHolding = !site.isHolding
        else if (one === 'take back') site.takeBack()
        else if (one !== 'publish') site.change(...one)
        else if (!site.isHolding) site.publish()
      }
      site.isHolding = false
      site.release()
      return t.strictSame(new Map([...site.image].sort()), new Map([...site.wanted()].sort()))
    }),
    { numRuns: 2000 },
  )
})
