import type { Protocol } from '../dns/message/query.ts'
import type { Address, Cidr } from '../dns/text/address.ts'
import type { ExplainableIndex } from '../publish/explainable.ts'
import type { Replay } from '../server/replay.ts'
import type { ChoiceTrace } from '../steering/trace.ts'
export interface ExplainRequest {
  /** Wire form. */
  readonly name: Uint8Array
  readonly type: number
  readonly source: Address
  /** Client subnet option; undefined = the query has none. */
  readonly subnet: Cidr | undefined
  readonly seed: number
  readonly protocol?: Protocol
  /** Listen address, as in a `ListenPlan`; undefined = the first that serves the name. */
  readonly address?: string | undefined
}

/** What `explain` runs on: a replay of an instance, and the trace that its steerers write to. */
export interface ExplainParts {
  readonly replay: Replay
  readonly trace: ChoiceTrace
  readonly index: ExplainableIndex
}
