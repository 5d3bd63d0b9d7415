import { scanCidr } from '../../src/dns/text/address.ts'
import { AddressRules } from '../../src/egress/names/address-rules.ts'
import { AGENT_LIMITS_DEFAULT } from '../../src/node/agent/agent-limits.ts'
import type { Connections, OnConnection } from '../../src/node/agent/connections.ts'
import type { Decision } from '../../src/node/agent/decision.ts'
import { EgressAgent, type EgressAgentParts } from '../../src/node/agent/egress-agent.ts'
import type { AddressPair } from '../../src/node/enforcer.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { FakeClock, FakeTimers } from './setup.ts'
import { TestPlane } from './test-plane.ts'

/** Connections that the test opens and closes. */
export class TestConnections implements Connections {
  /** `CLIENT ADDRESS`. */
  readonly open = new Set<string>()
  readonly cuts: AddressPair[] = []
  /** Why dumps are incomplete; '' = they are complete. */
  fault = ''
  onNew: OnConnection = () => {}

  async dump(onConnection: OnConnection): Promise<string> {
    for (const pair of this.open) {
      const [client = '', address = ''] = pair.split(' ')
      onConnection(client, address)
    }
    return this.fault
  }

  watch(onConnection: OnConnection): void {
    this.onNew = onConnection
  }

  cut(pairs: readonly AddressPair[]): void {
    this.cuts.push(...pairs)
  }

  close(): void {}
}

type StageParts = Partial<Omit<EgressAgentParts, 'limits'>> & {
  readonly limits?: Partial<EgressAgentParts['limits']>
}

/** An agent with time, a data plane and connections that the test controls. */
export class EgressStage {
  readonly clock: FakeClock
  readonly timers: FakeTimers
  readonly plane: TestPlane
  readonly connections = new TestConnections()
  readonly decisions: Decision[] = []
  readonly lines: string[] = []
  readonly agent: EgressAgent

  /** `before`: an agent that has ended. The new one has its time and its data plane. */
  constructor(parts: StageParts = {}, before?: EgressStage) {
    this.clock = before?.clock ?? new FakeClock()
    this.timers = before?.timers ?? new FakeTimers()
    this.plane = before?.plane ?? new TestPlane(this.clock, this.timers)
    const log = createLogger(
      '',
      (line) => this.lines.push(line),
      () => true,
    )
    this.agent = new EgressAgent({
      plane: this.plane,
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
