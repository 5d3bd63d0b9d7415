import { randomFillSync } from 'node:crypto'
import type { Broadcast } from '../../base/broadcast.ts'
import { InputError, InputErrors } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import { placeOf } from '../../plugin/block-place.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { CheckHook, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { type Handler, Trait } from '../../plugin/handler.ts'
import { ZONE_SIGNING } from '../../signing/registry.ts'
import type { KeyShare } from '../../signing/shared/key-share.ts'
import { ClockWatch } from './clock-watch.ts'
import { ChangedReplies, Dnssec } from './dnssec.ts'
import { openKeys } from './open-keys.ts'
import { type DnssecOptions, scanOptions } from './options.ts'
import { ReplySigning } from './reply-signing.ts'
import { DNSSEC_COUNTS, DnssecCount, ResponseSigner } from './response-signer.ts'
import type { ServedKeys } from './served-keys.ts'
import { ShareLink } from './share-link.ts'
import { type BudgetMemory, createBudgetMemory, SignatureBudget } from './signature-budget.ts'
import { type KeysOfZone, SigningZones } from './signing-zones.ts'
import { unsignedAnswers } from './unsigned-answers.ts'
import { warnOfUnsigned } from './unsigned-zones.ts'

/** The root zone in wire form. */
const ROOT_OCTETS = 1
/** Greatest TTL that replies of other sources are assumed to have: old signatures are in caches for this time. */
const TTL_SECONDS_MAX = 86_400

/** What the data threads need to sign. */
interface ThreadState {
  readonly budget: BudgetMemory
  readonly keys: readonly KeysOfZone[]
}

/** `dnssec [ZONES...] { … }`: signs zones, in their images or on demand. */
export const dnssec: Directive = {
  name: 'dnssec',
  setup(c) {
    const options = scanOptions(c)
    const keys = openKeys(options, c)
    const { zones, isNamed, policy } = options
    // A block for all names has zones below the root; without its name, the root itself is not one of them.
    const linked = zones.filter((zone) => isNamed || zone.length > ROOT_OCTETS)
    const settings = { zones, linked, policy: policy.signing }
    const signing = new SigningZones(settings, keys, (zone) => keys.manage(zone))
    c.block.shared.provide(ZONE_SIGNING, signing)
    const slots = c.counters()
    slots.length = DNSSEC_COUNTS
    const budget = new SignatureBudget(options.rates)
    const serving = serveKeys(c, keys, signing, budget)
    const signer = new ResponseSigner({
      policy: policy.signing,
      capacity: options.capacity,
      budget,
      slots,
      clock: c.clock,
      random: c.random,
    })
    const handler = (next: Handler): Handler => {
      // Sources that sign all zones in their images need no link.
      if (signing.served().length === 0 && !signing.isCompact) return next
      const knowsEmpty = answersFromZones(next)
      return new Dnssec(next, signing, new ReplySigning(signing, signer, { knowsEmpty }))
    }
    const handlerAboveChanges = (next: Handler): Handler => {
      signing.signChanges()
      return new ChangedReplies(
        next,
        signing,
        new ReplySigning(signing, signer, { isChanged: true }),
      )
    }
    const check = checkOf(c, keys, options)
    const link: DirectivePart = { handler, handlerAboveChanges, check }
    const [above, below] = shareKeys(c, options)
    return [above, link, serving, below, exportCounts(c, slots), warnOfUnsigned(c, signing, keys)]
  },
}

/**
 * True if the first handler that answers has zones, and gives their names to no other one: then no other handler has
 * records of a name that exists in these zones.
 */
function answersFromZones(next: Handler): boolean {
  let handler = next
  for (;;) {
    const { link, only } = handler
    if (link !== undefined) handler = link.next
    else if (only !== undefined && (only.queries & Trait.Every) === 0) handler = only.next
    else return handler.source !== undefined
  }
}

/** Gives the keys to the servers that `share` names. The second part starts after the keys exist. */
function shareKeys(c: SetupContext, options: DnssecOptions): [DirectivePart, DirectivePart] {
  const { share: sharing, keys, zones } = options
  if (sharing === undefined || keys.kind !== 'directory') return [{}, {}]
  let share: KeyShare | undefined
  const parts = { zones, sharing, share: () => share, log: c.log }
  const start = async (): Promise<void> => {
    const { openShare } = await import('./open-share.ts')
    share = openShare(keys.path, options, c)
  }
  return [
    { handler: (next) => new ShareLink(next, parts), waits: true },
    { start, stop: () => share?.stop() },
  ]
}

/** Loads the keys, and gives those of the link to all threads. */
function serveKeys(
  c: SetupContext,
  keys: ServedKeys,
  signing: SigningZones,
  budget: SignatureBudget,
): DirectivePart {
  const apply = (state: ThreadState): void => {
    budget.use(state.budget)
    signing.useKeys(state.keys)
  }
  const broadcast: Broadcast<ThreadState> = c.broadcast(apply)
  const stops: (() => void)[] = []
  let clockWatch: ClockWatch | undefined
  const start = async (): Promise<void> => {
    const watch = new ClockWatch(placeOf(c.block), c)
    clockWatch = watch
    stops.push(() => watch.stop())
    const memory = createBudgetMemory((secret) => randomFillSync(secret))
    for (const { apex, isClaimed } of signing.served()) if (!isClaimed) keys.manage(apex)
    await keys.start((warning) => c.log.warning(warning.print(), 'dnssec-key-warning'))
    const unsigned = unsignedAnswers(c.block.directives, signing.denial)
    if (unsigned !== '') c.log.warning(unsigned, 'dnssec-unsigned-answers')
    const publish = (): void => {
      const found = signing.served().map(({ apex }) => ({ zone: apex, keys: keys.find(apex) }))
      const state = { budget: memory, keys: found }
      apply(state)
      broadcast.publish(state)
      for (const { zone, keys: used } of found) {
        if (used !== undefined) keys.notePublished(zone, used, TTL_SECONDS_MAX)
      }
    }
    publish()
    stops.push(keys.subscribe(publish), signing.onClaims(publish))
  }
  return {
    start,
    ready: () => keys.unreadyReason?.() ?? '',
    problems: () => [...(keys.problems?.() ?? []), ...(clockWatch?.problems ?? [])],
    note: () => keys.note?.() ?? '',
    status: () => ({ keys: keys.reports() }),
    stop: async () => {
      for (const stop of stops.splice(0)) stop()
      await keys.stop()
    },
  }
}

/** Reads and checks the keys. */
function checkOf(c: SetupContext, keys: ServedKeys, options: DnssecOptions): CheckHook {
  const { zones } = options
  return async ({ warn, read, isOffline }) => {
    try {
      const { tsigFaults } = await import('./tsig-faults.ts')
      const [first, ...others] = tsigFaults(options, c.block)
      if (first !== undefined) throw new InputErrors(first, others)
      const count = await keys.check(warn, isOffline)
      const names = zones.map((zone) => printName(zone)).join(', ')
      const publicOnly = keys.publicOnly?.() ?? []
      const note =
        publicOnly.length === 0
          ? ''
          : `, of which another provider signs with ${publicOnly.join(', ')}`
      if (count !== undefined) read(`keys of ${names}: ${count}${note}`)
      const unsigned = unsignedAnswers(c.block.directives, options.policy.signing.denial)
      if (unsigned !== '') warn(new InputError(options.keys.position, unsigned))
      const { DELEGATION_CHECK } = await import('../../authority/delegation-check.ts')
      for (const zone of zones) {
        const dnskeys = keys.checkedKeys(zone)
        if (dnskeys.length > 0) c.shared.acquire(DELEGATION_CHECK).addKeys(zone, dnskeys, warn)
      }
      return []
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return error.all()
    }
  }
}

function exportCounts(c: SetupContext, slots: CounterSlots): DirectivePart {
  const { metrics } = c
  const entries = metrics.gauge(
    'coredns_dnssec_cache_entries',
    'The number of elements in the dnssec cache.',
    ['server', 'type'],
  )
  const counter = (name: string, help: string) => metrics.counter(name, help, ['server'])
  const hits = counter('coredns_dnssec_cache_hits_total', 'The count of cache hits.')
  const misses = counter('coredns_dnssec_cache_misses_total', 'The count of cache misses.')
  const made = counter('sextant_dnssec_signatures_total', 'Counter of signatures made on demand.')
  const refused = counter(
    'sextant_dnssec_refused_total',
    'Counter of replies that were not signed, because of the limit of new signatures or a wrong clock.',
  )
  const stored = new Map<string, number>()
  return collectWhileServing(c, () => {
    slots.forEach((counts, { server }) => {
      const total = (stored.get(server) ?? 0) + counts.take(DnssecCount.Entries)
      stored.set(server, total)
      entries.set({ server, type: 'signature' }, total)
      hits.inc({ server }, counts.take(DnssecCount.Hits))
      misses.inc({ server }, counts.take(DnssecCount.Misses))
      made.inc({ server }, counts.take(DnssecCount.Signatures))
      refused.inc({ server }, counts.take(DnssecCount.Refused))
    })
  })
}
