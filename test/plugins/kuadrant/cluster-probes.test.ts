import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ApiServer } from '../api-server.ts'

// Long: it waits for addresses to be found down.

const ZONE = 'k.example.com.'
const TICK_MS = 20

/** A gateway that answers at 127.0.0.2. */
async function listen(t: Test): Promise<{ readonly port: number; readonly hosts: Set<string> }> {
  const hosts = new Set<string>()
  const server = createServer((request, response) => {
    hosts.add(request.headers.host ?? '')
    response.end('ok')
  }).listen(0, '127.0.0.2')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, hosts }
}

function checkOf(port: number): object {
  return { protocol: 'HTTP', port, path: '/', interval: '1s', failureThreshold: 1 }
}

/** Both have one address that answers, and one that does not. */
function objectsOf(port: number): { readonly service: object; readonly record: object } {
  const addresses = ['127.0.0.2', '127.0.0.3']
  const host = 'record.k.example.com'
  return {
    service: {
      metadata: {
        ...{ name: 'shop', namespace: 'team', resourceVersion: '40', uid: 'u1' },
        annotations: {
          'external-dns.kubernetes.io/hostname': 'shop.k.example.com,shop.other.example',
          'sextant.io/health-check': JSON.stringify(checkOf(port)),
        },
      },
      spec: { type: 'LoadBalancer' },
      status: { loadBalancer: { ingress: addresses.map((ip) => ({ ip })) } },
    },
    record: {
      metadata: {
        ...{ name: 'record', namespace: 'team', resourceVersion: '41' },
        labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' },
      },
      spec: {
        ...{ rootHost: host, healthCheck: checkOf(port) },
        endpoints: [{ dnsName: host, recordType: 'A', targets: addresses }],
      },
    },
  }
}

/** The last octets of the addresses, in order. */
function ask(setUp: SetUp, name: string): string {
  const tx = transaction({ name: `${name}.${ZONE}`, type: RRType.A })
  setUp.handler().serve(tx)
  const { response } = tx
  const octets = Array.from({ length: response.count }, (_, i) => {
    return response.rdataBytes[i]![response.rdataOffset[i]! + 3]!
  })
  return octets.sort().join(' ')
}

function problemsOf({ problemReports }: SetUp): readonly string[] {
  const groups = problemReports.flatMap((report) => [...report.groups()])
  return groups.filter(({ count }) => count > 0).map(({ kind }) => kind)
}

t.test('a server probes the addresses of objects that are not DNSRecords', async (t) => {
  const { port, hosts } = await listen(t)
  const api = await ApiServer.start(t)
  const { service, record } = objectsOf(port)
  api.objects.set('services', [service])
  api.objects.set('dnsrecords', [record])
  const directory = temporaryDirectory(t)
  writeFileSync(join(directory, 'kubeconfig'), api.kubeconfig)
  const start = async (properties: string): Promise<SetUp> => {
    const lines = `kubeconfig ${directory}/kubeconfig\nsources dnsrecord service\n${properties}`
    const setUp = new SetUp(kuadrant, `kuadrant {\n${lines}\n}`, [ZONE])
    // The timers of probes are those of the system, and the clock of a SetUp stands still.
    const clock = setInterval(() => setUp.clock.pass(TICK_MS), TICK_MS)
    t.teardown(() => {
      clearInterval(clock)
      return setUp.stop()
    })
    await setUp.start()
    return setUp
  }
  const file = join(directory, 'probes')
  const probing = await start(`probe ${file}\nprobe-allow 127.0.0.0/8`)
  await until(() => ask(probing, 'shop') === '2', 'the address without a gateway to be removed')
  t.equal(ask(probing, 'record'), '2 3', 'the operator probes it')
  t.strictSame([...hosts], ['shop.k.example.com'], 'only hosts of our zones')
  await probing.stop()

  const next = await start(`probe ${file}\nprobe-allow 127.0.0.0/8`)
  t.equal(ask(next, 'shop'), '2', 'as in the file')
  await next.stop()

  const careful = await start('')
  await until(() => problemsOf(careful).includes('unprobed-address'), 'the addresses to be refused')
  t.equal(ask(careful, 'shop'), '2 3')
  await careful.stop()

  const off = await start('probe off')
  t.equal(ask(off, 'shop'), '2 3')
})

t.test('what `probe` needs', async (t) => {
  const wanted = /probe needs manifests, alias-resolver or other sources than dnsrecord/
  const cases: readonly (readonly [lines: string, want: RegExp | undefined])[] = [
    ['probe', wanted],
    ['sources dnsrecord\nprobe', wanted],
    ['probe-allow 10.0.0.0/8', /probe-allow needs probe or peer/],
    ['sources dnsrecord gateway\nprobe', undefined],
    ['probe\nsources ingress', undefined],
    ['sources service\nprobe-allow 10.0.0.0/8', undefined],
    ['alias-resolver 192.0.2.53\nprobe', undefined],
    ['probe off', undefined],
  ]
  for (const [lines, want] of cases) {
    const text = `kuadrant ${ZONE} {\n${lines}\n}`
    if (want === undefined) new SetUp(kuadrant, text, [])
    else t.match(await setupError(kuadrant, text), want, lines)
  }
})
