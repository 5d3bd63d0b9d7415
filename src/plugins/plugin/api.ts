import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Protocol } from '../../dns/message/query.ts'
import { Section } from '../../dns/message/section.ts'
import { printName, scanName } from '../../dns/name/name.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { DROP, type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

export type { Handler, Transaction }

/** Major version of this API: the number `sextant.apiVersion` in the package.json of a plug-in must be equal. */
export const API_VERSION = 1

/**
 * What a plug-in calls of the Sextant that runs it. It gets these as an argument, because it may be installed where it
 * cannot import Sextant.
 */
export interface PluginApi {
  readonly DROP: typeof DROP
  readonly PASS: typeof PASS
  readonly Link: typeof Link
  readonly Trait: typeof Trait
  readonly Rcode: typeof Rcode
  readonly RRClass: typeof RRClass
  readonly RRType: typeof RRType
  readonly Protocol: typeof Protocol
  readonly Section: typeof Section
  readonly printName: typeof printName
  readonly scanName: typeof scanName
}

export const PLUGIN_API: PluginApi = {
  DROP,
  PASS,
  Link,
  Trait,
  Rcode,
  RRClass,
  RRType,
  Protocol,
  Section,
  printName,
  scanName,
}

/** What the setup of a plug-in gets; see `SetupContext`. */
export type PluginContext = Pick<
  SetupContext,
  | 'blockZones'
  | 'broadcast'
  | 'clock'
  | 'dispenser'
  | 'log'
  | 'metrics'
  | 'random'
  | 'timers'
  | 'toControl'
  | 'warn'
>

/** What it returns; see `DirectivePart`. */
export type PluginPart = Pick<
  DirectivePart,
  | 'answers'
  | 'check'
  | 'exit'
  | 'handler'
  | 'note'
  | 'ready'
  | 'serving'
  | 'start'
  | 'stop'
  | 'waits'
>

/** A directive of a plug-in; see `Directive`. */
export interface PluginDirective {
  setup(c: PluginContext): PluginPart | readonly PluginPart[]
}

/** The default export of a plug-in. `name`: the directive's name in the Corefile. */
export type Plugin = (sextant: PluginApi, name: string) => PluginDirective
