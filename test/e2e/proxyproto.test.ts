import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { composeQuery } from '../support/client.ts'
import { ask, type Reply } from '../support/dig.ts'
import { needs, run } from '../support/peer.ts'
import { proxyHeader } from '../support/proxy-header.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

// Long: it starts servers and the proxies of other projects.

const IRELAND = '192.0.2.1'
const OTHERS = '192.0.2.9'

const endpoint = (code: string, target: string) => `
    - dnsName: www.geo.example
      recordType: A
      targets: [${target}]
      setIdentifier: '${code}'
      providerSpecific: [{name: geo-code, value: '${code}'}]`
const FILES = {
  'records/www.yaml': `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: www, namespace: default}
spec:
  rootHost: www.geo.example
  endpoints:${endpoint('IE', IRELAND)}${endpoint('*', OTHERS)}
`,
}

/** 127.0.0.5 is in Ireland, and 127.0.0.6 is refused. `slow.example` is answered by the control thread. */
const COREFILE = `geo.example:{PORT} {
  bind 127.0.0.1
  proxyproto {
    allow 127.0.0.1/32
  }
  geoip {
    edns-subnet
    net 127.0.0.5/32 IE
  }
  log . "{remote} asks for {name} over {proto}"
  acl {
    block net 127.0.0.6
  }
  kuadrant {
    manifests records
  }
}
view.example:{PORT} {
  bind 127.0.0.1
  view near {
    expr incidr(client_ip(), '127.0.0.5/32')
  }
  whoami
}
limited.example:{PORT} {
  bind 127.0.0.1
  rrl {
    responses-per-second 5
    slip-ratio 0
  }
  whoami
}
slow.example:{PORT} {
  bind 127.0.0.1
  log . "{remote} asks for {name} over {proto}"
  erratic {
    drop 0
    truncate 0
    delay 1 1ms
  }
}
`

/** Runs a proxy until the test ends. `printed`: explains a failure. */
function startProxy(t: Test, program: string, args: readonly string[]): { printed: () => string } {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += String(chunk)))
  child.stderr.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  return { printed: () => printed }
}

/** Starts a proxy with a configuration, and waits until it passes queries on. Returns its ports. */
async function proxyTo(
  t: Test,
  { port }: RunningServer,
  { program, ports: count = 1, args, text }: Proxy,
): Promise<number[]> {
  const directory = temporaryDirectory(t)
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  const file = join(directory, 'proxy.conf')
  writeFileSync(file, text(port, ports, directory))
  const { printed } = startProxy(t, program, args(file))
  for (const one of ports) {
    const probe = [
      '@127.0.0.1',
      '-p',
      String(one),
      '+tcp',
      '+tries=1',
      '+time=2',
      'geo.example',
      'SOA',
    ]
    const isUp = async () => (await run('dig', probe)).stdout.includes('Got answer')
    await until(isUp, `${program} to answer`).catch((error: Error) => {
      throw new Error(`${error.message}:\n${printed()}`)
    })
  }
  return ports
}

interface Proxy {
  readonly program: string
  /** Ports to listen on; default: one. */
  readonly ports?: number
  readonly args: (file: string) => readonly string[]
  readonly text: (server: number, ports: readonly number[], directory: string) => string
}

const HAPROXY: Proxy = {
  program: 'haproxy',
  ports: 2,
  args: (file) => ['-db', '-f', file],
  text: (server, [first, second]) => `global
  maxconn 100
defaults
  mode tcp
  timeout connect 10s
  timeout client 60s
  timeout server 60s
listen first
  bind 127.0.0.1:${first}
  server sextant 127.0.0.1:${server} send-proxy
listen second
  bind 127.0.0.1:${second}
  server sextant 127.0.0.1:${server} send-proxy-v2
`,
}

const NGINX: Proxy = {
  program: 'nginx',
  args: (file) => ['-c', file],
  text: (server, [port], directory) => `include /etc/nginx/modules-enabled/*.conf;
daemon off;
master_process off;
pid ${directory}/pid;
error_log stderr;
events {}
stream {
  server {
    listen 127.0.0.1:${port};
    proxy_pass 127.0.0.1:${server};
    proxy_protocol on;
  }
}
`,
}

const DNSDIST: Proxy = {
  program: 'dnsdist',
  args: (file) => ['--supervised', '--disable-syslog', '-C', file],
  text: (server, [port]) => `setLocal('127.0.0.1:${port}')
setSecurityPollSuffix('')
newServer({address='127.0.0.1:${server}', useProxyProtocol=true, checkName='geo.example.', checkType='SOA'})
`,
}

/** What clients behind a proxy get, and what the log says of them. */
async function checkClients(
  t: Test,
  server: RunningServer,
  port: number,
  protocol: 'udp' | 'tcp',
): Promise<void> {
  const before = server.output().length
  const options = protocol === 'tcp' ? ['+tcp'] : ['+notcp']
  const from = (client: string, name: string, ...others: readonly string[]): Promise<Reply> =>
    ask('dig', port, ['-b', client, ...options, ...others, name, 'A'])
  const near = await from('127.0.0.5', 'www.geo.example')
  t.match(near.answer, [new RegExp(`${IRELAND}$`)], 'the answer for its place')
  const far = await from('127.0.0.7', 'www.geo.example')
  t.match(far.answer, [new RegExp(`${OTHERS}$`)], 'the answer for another place')
  const subnet = await from('127.0.0.5', 'www.geo.example', '+subnet=127.0.0.7/32')
  t.match(subnet.answer, [new RegExp(`${OTHERS}$`)], 'the answer for a client subnet')
  t.equal((await from('127.0.0.5', 'view.example')).status, 'NOERROR', 'view')
  t.equal((await from('127.0.0.7', 'view.example')).status, 'REFUSED', 'view')
  t.equal((await from('127.0.0.6', 'www.geo.example')).status, 'REFUSED', 'acl')
  t.equal((await from('127.0.0.8', 'slow.example')).status, 'NOERROR', 'another thread')
  for (const [client, name] of [
    ['127.0.0.5', 'www.geo.example.'],
    ['127.0.0.6', 'www.geo.example.'],
    ['127.0.0.8', 'slow.example.'],
  ] as const) {
    const line = `${client} asks for ${name} over ${protocol}`
    await until(() => server.output().slice(before).includes(line), line)
  }
}

/** A client that is no proxy gets the answer for its own address, whatever header it sends. */
async function checkStranger(t: Test, server: RunningServer): Promise<void> {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, '127.0.0.9')
  await once(socket, 'listening')
  const replies: Buffer[] = []
  socket.on('message', (reply) => replies.push(reply))
  const query = composeQuery({ name: 'www.geo.example', type: 'A' }, 1)
  const forged = Buffer.concat([proxyHeader({ source: '127.0.0.5' }), query])
  await until(() => {
    if (replies.length === 0) socket.send(forged, server.port, '127.0.0.1')
    return replies.length > 0
  }, 'an answer')
  t.strictSame([...replies[0]!.subarray(-15, -11)], OTHERS.split('.').map(Number))
  await server.prints(/127\.0\.0\.9 asks for www\.geo\.example\. over udp/)
}

/** Sends a query for each of `clients` in a header, from `address`. Returns how many were answered. */
async function countAnswers(
  t: Test,
  { port }: RunningServer,
  address: string,
  clients: readonly string[],
): Promise<number> {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, address)
  await once(socket, 'listening')
  const answered = new Set<number>()
  socket.on('message', (reply) => answered.add(reply.readUInt16BE(0)))
  const send = (source: string, name: string, id: number): void => {
    const query = composeQuery({ name, type: 'A' }, id)
    socket.send(Buffer.concat([proxyHeader({ source }), query]), port, '127.0.0.1')
  }
  for (const [id, source] of clients.entries()) send(source, 'limited.example', id)
  // One thread answers the datagrams of a socket, in their order.
  await until(() => {
    if (!answered.has(clients.length)) send('198.51.100.1', 'geo.example', clients.length)
    return answered.has(clients.length)
  }, 'the last answer')
  return answered.size - 1
}

/** The limits of `rrl` are for clients: those in the headers of a proxy, and not those that a stranger names. */
async function checkLimits(t: Test, server: RunningServer): Promise<void> {
  const many = Array.from({ length: 60 }, (_, i) => `203.0.${i}.1`)
  const one = many.map(() => '192.0.2.7')
  t.equal(await countAnswers(t, server, '127.0.0.1', many), 60, 'clients of a proxy')
  const ofOne = await countAnswers(t, server, '127.0.0.1', one)
  t.ok(ofOne > 0 && ofOne < 50, `one client of a proxy: ${ofOne}`)
  const ofStranger = await countAnswers(t, server, '127.0.0.9', many)
  t.ok(ofStranger > 0 && ofStranger < 50, `a stranger: ${ofStranger}`)
}

for (const udp of ['batch', 'dgram']) {
  t.test(`UDP over ${udp}`, needs('dig'), async (t) => {
    const env = udp === 'dgram' ? { SEXTANT_UDP: udp } : {}
    const server = await startServer(t, { corefile: COREFILE, files: FILES, env })
    await t.test('dnsdist', needs('dnsdist'), async (t) => {
      const [port = 0] = await proxyTo(t, server, DNSDIST)
      await checkClients(t, server, port, 'udp')
      await checkClients(t, server, port, 'tcp')
      // Its health checks have headers without an address.
      await server.prints(/127\.0\.0\.1 asks for geo\.example\. over udp/)
      t.notMatch(server.output(), /dropped a PROXY header/)
    })
    await t.test('a stranger', (t) => checkStranger(t, server))
    await t.test('rrl', (t) => checkLimits(t, server))
    if (udp === 'dgram') return
    await t.test('HAProxy', needs('haproxy'), async (t) => {
      for (const port of await proxyTo(t, server, HAPROXY)) {
        await checkClients(t, server, port, 'tcp')
      }
    })
    await t.test('NGINX', needs('nginx'), async (t) => {
      const [port = 0] = await proxyTo(t, server, NGINX)
      await checkClients(t, server, port, 'tcp')
    })
  })
}
