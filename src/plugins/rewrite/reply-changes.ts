import { appendAnswer } from '../../authority/append-answer.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { lowerName, printName, scanName } from '../../dns/name/name.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { type NameChange, remap } from './names.ts'
import type { ReplyChange, Rewriting } from './rewriting.ts'

/** Offset of the name in the rdata of the types whose names are rewritten. */
const NAME_OFFSET: ReadonlyMap<number, number> = new Map([
  [RRType.CNAME, 0],
  [RRType.DNAME, 0],
  [RRType.NS, 0],
  [RRType.PTR, 0],
  [RRType.SOA, 0],
  [RRType.MX, 2],
  [RRType.SRV, 6],
])
/** Order and preference of a NAPTR; three strings follow. */
const NAPTR_STRINGS_OFFSET = 4
const NAPTR_STRINGS = 3

/** `answer name`: changes owner names. */
export class OwnerChange implements ReplyChange {
  readonly changesContent = true
  readonly #change: NameChange

  constructor(change: NameChange) {
    this.#change = change
  }

  apply({ response }: Transaction): undefined {
    for (let i = 0; i < response.count; i++) {
      const name = printName(response.ownerBytes[i]!, response.ownerOffset[i]!)
      const changed = changeName(this.#change, name)
      if (changed === undefined) continue
      response.ownerBytes[i] = changed
      response.ownerOffset[i] = 0
    }
  }
}

/** `answer value`: changes names in rdata. */
export class ValueChange implements ReplyChange {
  readonly changesContent = true
  readonly #change: NameChange

  constructor(change: NameChange) {
    this.#change = change
  }

  apply({ response }: Transaction): undefined {
    for (let i = 0; i < response.count; i++) {
      const at = nameOffset(response, i)
      if (at === -1) continue
      const name = printName(response.rdataBytes[i]!, response.rdataOffset[i]! + at)
      const changed = changeName(this.#change, name)
      if (changed !== undefined) replaceName(response, i, at, changed)
    }
  }
}

/** `answer auto`: changes the rewritten name of the query, and names below it, back. */
export class AutoChange implements ReplyChange {
  readonly changesContent = true
  readonly #original: string
  readonly #rewritten: string

  /** The names of the query before and after the rule. */
  constructor(original: string, rewritten: string) {
    this.#original = original
    this.#rewritten = rewritten
  }

  apply(tx: Transaction): undefined {
    const change = remap(this.#rewritten, this.#original)
    new ValueChange(change).apply(tx)
    new OwnerChange(change).apply(tx)
  }
}

export class TtlChange implements ReplyChange {
  readonly changesContent = false
  readonly #min: number
  readonly #max: number

  constructor(min: number, max: number) {
    this.#min = min
    this.#max = max
  }

  apply({ response }: Transaction): undefined {
    for (let i = 0; i < response.count; i++) {
      const ttlSeconds = response.ttlSeconds[i]!
      response.ttlSeconds[i] = Math.max(this.#min, Math.min(ttlSeconds, this.#max))
    }
  }
}

export class RcodeChange implements ReplyChange {
  readonly changesContent = true
  readonly #from: number
  readonly #to: number

  constructor(from: number, to: number) {
    this.#from = from
    this.#to = to
  }

  apply({ response }: Transaction): undefined {
    if (response.rcode === this.#from) response.rcode = this.#to
  }
}

/** `cname`: replaces the target of a CNAME, and what follows it by the records of the new target. */
export class CnameChange implements ReplyChange {
  readonly changesContent = true
  readonly #change: NameChange

  constructor(change: NameChange) {
    this.#change = change
  }

  apply(tx: Transaction, rewriting: Rewriting): undefined | Promise<undefined> {
    const { response } = tx
    for (let i = 0; i < response.count; i++) {
      if (response.section[i] !== Section.Answer || response.type[i] !== RRType.CNAME) continue
      const target = printName(response.rdataBytes[i]!, response.rdataOffset[i]!)
      const changed = changeName(this.#change, target)
      if (changed === undefined) continue
      const asked = tx.server.lookupInternally(tx, changed, rewriting.qtype)
      if (!(asked instanceof Promise)) return finish(tx, i, changed, asked)
      return asked.then((found) => finish(tx, i, changed, found))
    }
    return undefined
  }
}

function finish(
  tx: Transaction,
  alias: number,
  target: Uint8Array,
  found: Transaction | undefined,
): undefined {
  if (found === undefined) return
  const { response } = tx
  replaceName(response, alias, 0, target)
  let kept = 0
  for (let i = 0; i < response.count; i++) {
    const leads = i <= alias && response.type[i] === RRType.CNAME
    if (leads || response.section[i] !== Section.Answer) response.move(i, kept++)
  }
  response.count = kept
  appendAnswer(tx, found.response)
  response.truncated = found.response.truncated
  tx.server.release(found)
}

/** Undefined: the name stays, because it does not match or the result is not a domain name. */
function changeName(change: NameChange, name: string): Uint8Array | undefined {
  const text = change(name.toLowerCase())
  const changed = text === undefined ? undefined : scanName(text)
  return changed === undefined ? undefined : lowerName(changed)
}

/** Offset of the name in the rdata of record `i`; -1 = its names are not rewritten. */
function nameOffset(response: Response, i: number): number {
  const type = response.type[i]!
  if (type !== RRType.NAPTR) return NAME_OFFSET.get(type) ?? -1
  const rdata = response.rdataBytes[i]!
  const start = response.rdataOffset[i]!
  let at = start + NAPTR_STRINGS_OFFSET
  for (let k = 0; k < NAPTR_STRINGS; k++) at += rdata[at]! + 1
  return at - start
}

/** Replaces the name at `at` in the rdata of record `i`. */
function replaceName(response: Response, i: number, at: number, name: Uint8Array): void {
  const start = response.rdataOffset[i]!
  const old = response.rdataBytes[i]!.subarray(start, start + response.rdataOctets[i]!)
  let end = at
  while (old[end]! > 0) end += old[end]! + 1
  const rdata = Buffer.concat([old.subarray(0, at), name, old.subarray(end + 1)])
  response.rdataBytes[i] = rdata
  response.rdataOffset[i] = 0
  response.rdataOctets[i] = rdata.length
}
