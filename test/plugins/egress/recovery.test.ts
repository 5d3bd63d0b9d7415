import t from 'tap'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { Client } from '../../../src/egress/agent/client.ts'
import { type ClientFeed, NodeService } from '../../../src/plugins/egress/node-service.ts'
import { clientOf } from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'
import { until } from '../../support/until.ts'

const WEB = clientOf('a', '10.1.0.1', [{ names: 'www.example.com' }])

const STARTUP_MS = 5000

const silentLog = () =>
  createLogger(
    '',
    () => {},
    () => false,
  )

function readyFeed(clients: readonly Client[], onStart = (): void => {}): ClientFeed {
  let report = (_clients: readonly Client[]): void => {}
  return {
    start: () => {
      onStart()
      report(clients)
    },
    onChange: (listener) => {
      report = listener
      return () => {}
    },
    reason: '',
    close: () => {},
  }
}

function serviceOf(stage: EgressStage, feed: ClientFeed, log = silentLog()): NodeService {
  const { agent, clock, timers } = stage
  return new NodeService({
    ...{ agent, feed, clock, timers, log, openApi: undefined, dialect: 'cilium-1.19' },
    startupMs: STARTUP_MS,
    probe: async () => {},
    bypasses: { start: async () => {}, found: [], close: () => {} },
    close: () => {},
  })
}

t.test(
  'a fault is over once the rules are in force, without a change of the clients',
  async (t) => {
    const stage = new EgressStage()
    const { enforcer } = stage
    const lines: string[] = []
    const log = createLogger(
      '',
      (line) => lines.push(line),
      () => true,
    )
    const service = serviceOf(stage, readyFeed([WEB]), log)
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

t.test('replies wait for the sources, and not for the state of an earlier process', async (t) => {
  const stage = new EgressStage()
  stage.agent.restore = () => new Promise(() => {})
  const service = serviceOf(stage, readyFeed([WEB]))
  t.teardown(() => service.close())
  await service.start()
  t.equal(stage.enforcer.clients.length, 1, 'the clients are set')
  void service.restore()
  t.equal(service.reason, '')
})

t.test('if the sources cannot be read in time, replies wait for that state', async (t) => {
  const stage = new EgressStage()
  let restore = (_fault: string): void => {}
  let isRestoring = false
  stage.agent.restore = () => {
    isRestoring = true
    return new Promise((resolve) => (restore = resolve))
  }
  let isRead = false
  const silent = { ...readyFeed([]), start: () => (isRead = true), reason: 'the API is away' }
  const service = serviceOf(stage, silent)
  t.teardown(() => service.close())
  let isServing = false
  const started = service.start().then(() => (isServing = true))
  await until(() => isRead, 'the sources are asked')
  await stage.timers.advance(STARTUP_MS)
  await until(() => isRestoring, 'the state is read')
  t.notOk(isServing)
  restore('')
  await started
})

t.test(
  'a late fault of the restored state does not hide that the rules are in force',
  async (t) => {
    const stage = new EgressStage()
    stage.agent.restore = async () => '10.1.0.9 has too many elements'
    const service = serviceOf(stage, readyFeed([WEB]))
    t.teardown(() => service.close())
    await service.start()
    await service.restore()
    t.equal(service.reason, '')
  },
)
