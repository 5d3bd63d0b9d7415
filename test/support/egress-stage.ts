import { isDeepStrictEqual } from 'node:util'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import { AGENT_LIMITS_DEFAULT } from '../../src/egress/agent/agent-limits.ts'
import type { Connections, CutResult, Flow, OnFlow } from '../../src/egress/agent/connections.ts'
import type { Decision } from '../../src/egress/agent/decision.ts'
import { EgressAgent, type EgressAgentParts } from '../../src/egress/agent/egress-agent.ts'
import { AddressRules } from '../../src/egress/learned/address-rules.ts'
import { FakeClock, FakeTimers } from './setup.ts'
import { TestEnforcer } from './test-enforcer.ts'

/** A connection as `CLIENT ADDRESS [PROTOCOL PORT [TARGET PORT]]`; by default it is one of TCP to port 443. */
export function flowOf(text: string): Flow {
  const [source = '', destination = '', number = '6', port = '443', ...behind] = text.split(' ')
  const [target = destination, targetPort = port] = behind
  const protocol = Number(number)
  const [asked, translated] = [Number(port), Number(targetPort)]
  const ports = { port: asked, target, targetPort: translated }
  return { protocol, source, destination, ...ports, isOpen: true }
}

/** Connections that the test opens and closes. */
export class TestConnections implements Connections {
  /** As `flowOf` reads them. */
  readonly open = new Set<string>()
  /** Connections that have ended, and that a dump still shows. */
  readonly ended = new Set<string>()
  readonly cuts: string[] = []
  dumps = 0
  /** Why dumps are incomplete; '' = they are complete. */
  fault = ''
  onNew: OnFlow = () => {}

  async dump(onFlow: OnFlow): Promise<string> {
    this.dumps++
    for (const text of this.open) onFlow(flowOf(text))
    for (const text of this.ended) onFlow({ ...flowOf(text), isOpen: false })
    return this.fault
  }

  watch(onFlow: OnFlow): void {
    this.onNew = onFlow
  }

  async cut(flow: Flow): Promise<CutResult> {
    const ended = [...this.open].filter((text) => isDeepStrictEqual(flowOf(text), flow))
    this.cuts.push(...ended)
    for (const text of ended) this.open.delete(text)
    return { count: ended.length, fault: '' }
  }

  close(): void {}
}

type StageParts = Partial<Omit<EgressAgentParts, 'limits'>> & {
  readonly limits?: Partial<EgressAgentParts['limits']>
}

/** An agent with time, an enforcer and connections that the test controls. */
export class EgressStage {
  readonly clock: FakeClock
  readonly timers: FakeTimers
  readonly enforcer: TestEnforcer
  readonly connections = new TestConnections()
  readonly decisions: Decision[] = []
  readonly lines: string[] = []
  readonly agent: EgressAgent

  /** `before`: an agent that has ended. The new one has its time and its enforcer. */
  constructor(parts: StageParts = {}, before?: EgressStage) {
    this.clock = before?.clock ?? new FakeClock()
    this.timers = before?.timers ?? new FakeTimers()
    this.enforcer = before?.enforcer ?? new TestEnforcer(this.clock, this.timers)
    const log = createLogger(
      '',
      (line) => this.lines.push(line),
      () => true,
    )
    this.agent = new EgressAgent({
      enforcer: this.enforcer,
      rules: new AddressRules([scanCidr('10.96.0.0/12')!], []),
      connections: this.connections,
      maxDelayMs: 100,
      cutsConnections: false,
      statePath: '',
      clock: this.clock,
      timers: this.timers,
      log,
      onDecision: (decision) => this.decisions.push(decision),
      ...parts,
      limits: { ...AGENT_LIMITS_DEFAULT, ...parts.limits },
    })
    this.agent.start()
  }

  /** Lets time pass, in steps of at most a second. */
  async pass(milliseconds: number): Promise<void> {
    for (let left = milliseconds; left > 0; left -= 1000) {
      const step = Math.min(left, 1000)
      this.clock.pass(step)
      await this.timers.advance(step)
    }
  }
}
