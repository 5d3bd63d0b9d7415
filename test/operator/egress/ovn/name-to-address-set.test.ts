import t, { type Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import { Rcode, RRClass, RRType } from '../../../../src/dns/iana/index.ts'
import { scanAddress } from '../../../../src/dns/text/address.ts'
import { monitoredRows } from '../../../../src/egress/sinks/ovn/address-set-row.ts'
import { createOvnController } from '../../../../src/operator/egress/ovn/ovn-controller.ts'
import { NAME_KINDS } from '../../../../src/operator/egress/resources.ts'
import { OvsdbClient } from '../../../../src/ovsdb/client.ts'
import type { OvsdbRow } from '../../../../src/ovsdb/datum.ts'
import { scanRemotes } from '../../../../src/ovsdb/remote.ts'
import { serve } from '../../../server/data/stage.ts'
import { UdpClient } from '../../../support/client.ts'
import { eventRecorder } from '../../../support/event-recorder.ts'
import { ObjectApi, serveObjectApi } from '../../../support/object-api.ts'
import { NorthboundServer } from '../../../support/ovsdb.ts'
import { needs } from '../../../support/peer.ts'
import { ScriptedServer } from '../../../support/scripted-server.ts'
import { until } from '../../../support/until.ts'

const NEEDS = needs('ovsdb-server', 'ovn-northd')
const NAMESPACE = 'ovn-kubernetes'
const OWNER = 'sextant'
const WWW = 'www.example.com.'
const FIRST = '192.0.2.200'
const LOOKUPS = 60

/**
 * A DNS server with `egressfirewall`, the controller `ovn` with a real server of OVN Northbound, and an
 * API server in memory between them.
 */
async function place(t: Test, properties: string) {
  const api = new ObjectApi()
  api.put('dnsnameresolvers', NAMESPACE, 'www', { spec: { name: WWW } })
  const upstreamIps: string[] = []
  const upstream = await ScriptedServer.open(t, ({ question }) => {
    return upstreamIps.map((ip) => {
      const fixed = { type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 300 }
      return { owner: question!.name, ...fixed, rdata: scanAddress(ip)!.bytes }
    })
  })
  const corefile = `.:{PORT} {
    bind 127.0.0.1
    prometheus :1
    egressfirewall {
        endpoint ${await serveObjectApi(t, api)}
        namespaces ${NAMESPACE}
        ${properties}
    }
    forward . 127.0.0.1:${upstream.port}
}
`
  const database = await NorthboundServer.start(t)
  const remotes = scanRemotes(database.remote)!
  const env = {
    clock: systemClock,
    timers: systemTimers,
    random: new Random(7),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
  }
  const operator = { ...env, api: api.client(), namespaces: [] }
  const controller = createOvnController(
    {
      ...operator,
      events: eventRecorder(operator),
      registry: new MetricsRegistry(),
      mayWrite: () => true,
    },
    {
      ...{
        namespace: NAMESPACE,
        nameKind: NAME_KINDS[0],
        remotes,
        tls: undefined,
        owner: OWNER,
        families: [1],
      },
      clusterNetworks: [],
      allowedNetworks: [],
    },
  )
  t.teardown(() => controller.end())
  /** When an address was seen in an address set, by a client that only reads. */
  const seenMs = new Map<string, number>()
  const look = (row: OvsdbRow | undefined): void => {
    if (!(row?.addresses instanceof Set)) return
    for (const ip of row.addresses) {
      if (!seenMs.has(String(ip))) seenMs.set(String(ip), performance.now())
    }
  }
  const reader = new OvsdbClient({
    ...{ ...env, remotes, tls: undefined, database: 'OVN_Northbound' },
    monitored: monitoredRows(OWNER),
    onRow: (_, row) => look(row),
    // The server cuts a client whose thread was busy for 10 s, as this one is while it compiles.
    onSync: () => [...reader.rows].forEach(look),
  })
  t.teardown(() => reader.close())
  reader.start()
  await until(() => reader.reason === '', 'the reader')
  controller.begin()
  await until(() => [...reader.rows].length === 1, 'the address set of the object')
  const stage = await serve(t, 'dgram', corefile)
  const client = await UdpClient.connect(stage.port)
  t.teardown(() => client.close())
  const lookUp = async (ip: string): Promise<number> => {
    upstreamIps[0] = ip
    return (await client.ask({ name: WWW, type: 'A' }))[3]! & 15
  }
  const statusIps = (): readonly string[] => {
    const [entry] = api.read('dnsnameresolvers', NAMESPACE, 'www').status?.resolvedNames ?? []
    return (entry?.resolvedAddresses ?? []).map(({ ip }: { ip: string }) => ip)
  }
  let rcode = 0
  const isKnown = async (): Promise<boolean> => {
    rcode = await lookUp(FIRST)
    return seenMs.has(FIRST)
  }
  await until(isKnown, 'the server to know the object').catch((error: Error) => {
    const seen = `last rcode ${rcode}, status ${statusIps()}, sets ${[...seenMs.keys()]}`
    throw new Error(`${error.message}: ${seen}, reader ${reader.reason}\n${stage.lines.join('')}`)
  })
  return { seenMs, statusIps, lookUp, controller }
}

function quantiles(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b)
  const print = (share: number): string => sorted[Math.floor(sorted.length * share)]!.toFixed(1)
  return `median ${print(0.5)} ms, 95 % ${print(0.95)} ms, most ${print(0.999)} ms`
}

for (const properties of ['', 'gate 5s']) {
  const what = properties === '' ? 'as is' : `with ${properties}`
  t.test(`from a query to the address set, ${what}`, NEEDS, async (t) => {
    const { seenMs, statusIps, lookUp, controller } = await place(t, properties)
    const replies: number[] = []
    const sets: number[] = []
    for (let i = 1; i <= LOOKUPS; i++) {
      const ip = `192.0.2.${i}`
      const startMs = performance.now()
      t.equal(await lookUp(ip), Rcode.NOERROR)
      replies.push(performance.now() - startMs)
      if (properties !== '')
        t.ok(statusIps().includes(ip), 'the status is written before the reply')
      await until(() => seenMs.has(ip), `${ip} in the address set`)
      sets.push(seenMs.get(ip)! - startMs)
    }
    t.same([...seenMs.keys()].sort(), [...statusIps()].sort())
    t.equal(seenMs.size, LOOKUPS + 1)
    t.equal(controller.reason, '')
    t.comment(`query to reply, ${what}: ${quantiles(replies)}`)
    t.comment(`query to address set, ${what}: ${quantiles(sets)}`)
  })
}
