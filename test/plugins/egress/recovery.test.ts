import t from 'tap'
import type { Client } from '../../../src/node/client.ts'
import { NodeService } from '../../../src/plugins/egress/node-service.ts'
import { createLogger } from '../../../src/telemetry/log.ts'
import { clientOf } from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'
import { until } from '../../support/until.ts'

t.test(
  'a fault is over once the rules are in force, without a change of the clients',
  async (t) => {
    const { agent, enforcer, clock, timers } = new EgressStage()
    const lines: string[] = []
    const clients = [clientOf('a', '10.1.0.1', [{ names: 'www.example.com' }])]
    let report = (_clients: readonly Client[]): void => {}
    const feed = {
      start: () => report(clients),
      onChange: (listener: typeof report) => {
        report = listener
        return () => {}
      },
      reason: '',
      close: () => {},
    }
    const log = createLogger(
      '',
      (line) => lines.push(line),
      () => true,
    )
    const service = new NodeService({
      ...{
        agent,
        feed,
        clock,
        timers,
        log,
        openApi: undefined,
        dialect: 'cilium-1.19',
        startupMs: 5000,
      },
      probe: async () => {},
      bypasses: { start: async () => {}, found: [], close: () => {} },
      close: () => {},
    })
    t.teardown(() => service.close())
    enforcer.fault = 'nft ended with exit code 1'
    await service.start()
    t.equal(service.reason, 'not in force: nft ended with exit code 1')
    enforcer.fault = ''
    service.noteRecovery()
    await until(() => service.reason === '', 'the end of the fault')
    t.match(lines.join('\n'), /are not in force: nft ended.*\n.*are in force again/)
  },
)
