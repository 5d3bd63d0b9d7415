import { InputError } from '../base/errors.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import type { AdminSite } from '../plugin/admin.ts'
import type { AnswerExplainer } from '../plugin/answer-explainer.ts'
import type { CheckReport, DirectivePart, OfflineLoad } from '../plugin/description.ts'
import type { BlockConfig, CorefileView } from '../plugin/directive.ts'
import { QUERY_TAP } from '../plugin/query-tap.ts'
import { type ListenPlan, planListeners } from './listen-plan.ts'
import {
  chargeTo,
  type DirectivePlace,
  type HttpRoute,
  type RegisteredPart,
  type Registrations,
  type SetupParts,
  setupBlocks,
} from './setup.ts'

/** What an instance gets from the process. */
export interface InstanceParts extends SetupParts {
  /** Opens what explains the answers of an instance; absent where none serves. */
  readonly openExplainer?: (instance: Instance) => Promise<AnswerExplainer>
}

/**
 * One Corefile, set up: its chains, its listen addresses, and the hooks of its directives. Holds no
 * socket; `Supervisor` starts and stops it.
 */
export class Instance {
  readonly plans: readonly ListenPlan[]
  /** The settings of each server block, in the order of the Corefile. */
  readonly configs: readonly BlockConfig[]
  /** The server blocks that it was set up from; other threads set up the same ones. */
  readonly blocks: readonly ServerBlock[]
  readonly corefile: CorefileView
  /** What its setups got. */
  readonly parts: InstanceParts
  readonly #registrations: Registrations

  private constructor(
    { plans, configs }: Pick<Instance, 'plans' | 'configs'>,
    { blocks, corefile, parts }: Pick<Instance, 'blocks' | 'corefile' | 'parts'>,
    registrations: Registrations,
  ) {
    this.plans = plans
    this.configs = configs
    this.blocks = blocks
    this.corefile = corefile
    this.parts = parts
    this.#registrations = registrations
  }

  /** Sets up an instance, or returns everything that is wrong with the Corefile. No side effects. */
  static create(
    blocks: readonly ServerBlock[],
    corefile: CorefileView,
    parts: InstanceParts,
  ): { instance: Instance; errors: readonly InputError[] } {
    const setup = setupBlocks(blocks, corefile, parts)
    const { plans, errors, warnings } = planListeners(
      setup.blocks,
      setup.registrations.shared.find(QUERY_TAP),
    )
    setup.registrations.warnings.push(...warnings)
    setup.registrations.findOwnBlock = async (server, name) => {
      // Only some directives need it.
      const { findOwnBlock } = await import('./own-blocks.ts')
      return findOwnBlock(plans, setup.blocks, server, name)
    }
    const configs = setup.blocks.map(({ config }) => config)
    const instance = new Instance(
      { plans, configs },
      { blocks, corefile, parts },
      setup.registrations,
    )
    const { openExplainer } = parts
    if (openExplainer !== undefined) {
      setup.registrations.openExplainer = () => openExplainer(instance)
    }
    return { instance, errors: [...setup.errors, ...errors] }
  }

  /** HTTP endpoints by address. If two have the same path, the first one counts. */
  httpRoutes(): Map<string, HttpRoute[]> {
    const byAddress = new Map<string, HttpRoute[]>()
    for (const route of this.#registrations.http) {
      const routes = byAddress.get(route.address) ?? []
      byAddress.set(route.address, routes)
      if (!routes.some((other) => other.path === route.path)) routes.push(route)
    }
    return byAddress
  }

  /** Admin APIs by address. Setups have refused different settings for one address. */
  adminSites(): Map<string, AdminSite> {
    return new Map(this.#registrations.admin.map((site) => [siteKey(site), site]))
  }

  /** Starts the directives in turn. Rejects with the first failure, which names its directive. */
  async startUp(): Promise<void> {
    await this.#runInTurn(({ start }) => start?.())
  }

  /** Loads the directives offline, in turn. Rejects with the first failure, which names its directive. */
  async loadOffline(load: OfflineLoad): Promise<void> {
    await this.#runInTurn(({ offline }) => offline?.(load))
  }

  async #runInTurn(run: (part: DirectivePart) => void | Promise<void>): Promise<void> {
    for (const placed of this.#registrations.parts) {
      try {
        await run(placed.part)
      } catch (error) {
        throw hookFault(placed, error)
      }
    }
  }

  /** Call it once the sockets are open. */
  serving(): void {
    for (const { part } of this.#registrations.parts) part.serving?.()
  }

  /** Settings that work, but probably not as intended, as far as setups can detect them. */
  get warnings(): readonly InputError[] {
    return this.#registrations.warnings
  }

  /** Runs the validations of `sextant check`; returns the faults. */
  async check(report: CheckReport): Promise<InputError[]> {
    // Only `check` needs these.
    const { findHttpConflicts } = await import('./http-conflicts.ts')
    const { describeUnlimited } = await import('./unlimited-blocks.ts')
    const conflicts = findHttpConflicts(this.#registrations, this.plans)
    for (const warning of conflicts.warnings) report.warn(warning)
    const unlimited = describeUnlimited(this.configs)
    if (unlimited !== '') report.foresee(unlimited)
    const errors = [...conflicts.faults]
    for (const placed of this.#registrations.parts) {
      const { check } = placed.part
      if (check === undefined) continue
      const charge = (error: InputError): InputError => {
        return isAboutCorefile(error, placed) ? chargeTo(placed.directive, error) : error
      }
      try {
        const found = await check({
          ...report,
          warn: (warning) => report.warn(charge(warning)),
        })
        errors.push(...found.map(charge))
      } catch (error) {
        errors.push(hookFault(placed, error))
      }
    }
    return errors
  }

  /**
   * Runs every shutdown hook, even if others fail, and returns the failures. Also called after a
   * failed start: a hook must handle a directive that never started.
   */
  async shutDown(): Promise<InputError[]> {
    return runAll(this.#registrations.parts, ({ stop }) => stop?.())
  }

  /** Runs the hooks that wait at exit (lameduck), all at once; returns the failures. */
  async finalShutDown(): Promise<InputError[]> {
    return runAll(this.#registrations.parts, ({ exit }) => exit?.())
  }
}

/** Identifies the listener of a site: one that serves TLS can't serve without it, and vice versa. */
function siteKey({ address, certificate }: AdminSite): string {
  return `${certificate === undefined ? 'http' : 'https'}://${address}`
}

async function runAll(
  parts: readonly RegisteredPart[],
  run: (part: DirectivePart) => void | Promise<void>,
): Promise<InputError[]> {
  const results = await Promise.allSettled(parts.map(async ({ part }) => run(part)))
  return results.flatMap((result, i) => {
    return result.status === 'rejected' ? [hookFault(parts[i]!, result.reason)] : []
  })
}

/** False for faults inside files that a directive reads: their position is sufficient. */
function isAboutCorefile({ position, message }: InputError, place: DirectivePlace): boolean {
  if (position === undefined) return false
  if (position.file === place.position.file) return true
  // Errors in imported lines have the form of the dispenser's errors.
  return message.startsWith(`${position.file}:${position.line} - `)
}

/** Converts what a hook threw to an error with a position. */
function hookFault({ directive, position }: DirectivePlace, error: unknown): InputError {
  if (error instanceof InputError && error.position !== undefined) {
    return chargeTo(directive, error)
  }
  const message = error instanceof Error ? error.message : String(error)
  return chargeTo(directive, new InputError(position, message, error))
}
