import { resolve } from 'node:path'
import { scanDuration } from '../../base/duration.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanCidr } from '../../dns/text/address.ts'
import { AddressSet } from '../../dns/text/address-set.ts'
import type { CheckHook, Description } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { Loadbalance, PREFERRED_MAX, type WeightSource } from './loadbalance.ts'
import { WeightFile } from './weight-file.ts'
import { copyWeights, type WeightMemory } from './weights.ts'

const RELOAD_DEFAULT_MS = 30_000
const RELOAD_MIN_MS = 10

/** The settings of the directive. */
interface Policy {
  /** '' = shuffle. */
  file: string
  reloadMs: number
  /** Position of the line that names the file. */
  position: Position
  readonly preferred: AddressSet[]
}

/** `loadbalance [round_robin | weighted FILE] { reload DUR | prefer CIDR... }`. */
export const loadbalance: Directive = { name: 'loadbalance', setup }

function setup(c: SetupContext): Description {
  const position = c.dispenser.position()
  const policy: Policy = { file: '', reloadMs: RELOAD_DEFAULT_MS, position, preferred: [] }
  while (c.dispenser.next()) scanPolicy(c.dispenser, policy)
  const { preferred } = policy
  if (policy.file === '') {
    return { handler: (next) => new Loadbalance(next, { weights: undefined, preferred }) }
  }
  const path = resolve(c.block.root, policy.file)
  const weights: WeightSource = { current: copyWeights([]) }
  const broadcast = c.broadcast<WeightMemory>((followed) => {
    weights.current = followed
  })
  const serve = (loaded: WeightMemory): void => {
    weights.current = loaded
    broadcast.publish(loaded)
  }
  const { log, timers } = c
  const file = new WeightFile({ path, reloadMs: policy.reloadMs, log, timers, serve })
  const faultHere = (text: string) => new InputError(policy.position, text)
  const check: CheckHook = async ({ warn, read }) => {
    let isMissing = false
    const fault = await file.check((text) => {
      isMissing = true
      warn(faultHere(text))
    })
    if (fault === '' && !isMissing) read(`${path}: weights`)
    return fault === '' ? [] : [faultHere(fault)]
  }
  const handler = (next: Handler): Handler => new Loadbalance(next, { weights, preferred })
  return { handler, start: () => file.start(), check, stop: () => file.stop() }
}

function scanPolicy(d: Dispenser, policy: Policy): void {
  const [name = 'round_robin', ...args] = d.remainingArgs()
  if (name !== 'round_robin' && name !== 'weighted') {
    throw d.error(`unknown policy: ${name}${didYouMean(name, ['round_robin', 'weighted'])}`)
  }
  if (name === 'round_robin' && args.length > 0) {
    throw d.error('unknown property for round_robin')
  }
  if (name === 'weighted') {
    if (args.length === 0) throw d.error('missing weight file argument')
    if (args.length > 1) throw d.error('unexpected argument(s)')
  }
  policy.file = args[0] ?? ''
  policy.position = d.position()
  d.eachProperty(() => {
    if (d.value() === 'prefer') scanPrefer(d, policy)
    else if (d.value() === 'reload' && policy.file !== '') policy.reloadMs = scanReload(d)
    else throw d.unknownProperty(d.value(), ['prefer', 'reload'])
  })
}

function scanPrefer(d: Dispenser, policy: Policy): void {
  for (const text of d.remainingArgs()) {
    const network = scanCidr(text)
    if (network === undefined) throw d.error(`invalid CIDR ${JSON.stringify(text)}`)
    policy.preferred.push(new AddressSet([network]))
  }
  if (policy.preferred.length > PREFERRED_MAX) {
    throw d.error(`prefer has ${policy.preferred.length} networks; use at most ${PREFERRED_MAX}`)
  }
}

function scanReload(d: Dispenser): number {
  const args = d.remainingArgs()
  if (args.length === 0) throw d.error('reload duration value is missing')
  if (args.length > 1) throw d.error('unexpected argument')
  const reloadMs = scanDuration(args[0]!)
  if (reloadMs === undefined || reloadMs < 0 || (reloadMs > 0 && reloadMs < RELOAD_MIN_MS)) {
    throw d.error(`invalid reload duration '${args[0]}'`)
  }
  return reloadMs
}
