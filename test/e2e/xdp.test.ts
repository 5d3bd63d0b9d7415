import t from 'tap'
import { needs, needsRoot } from '../support/peer.ts'
import { putFile } from '../support/server.ts'
import { until } from '../support/until.ts'
import { CLIENT, corefile, SERVER, SERVER6, XdpPlace } from './xdp-place.ts'

// Long: it starts many servers.

/*
 * AF_XDP end to end: the server, the client and their interfaces are network namespaces with veth. The kernel's counters of
 * UDP show whether a query went through a socket.
 */

t.setTimeout(600_000)

const NEEDS = { ...needsRoot(), ...needs('ip', 'dig') }
const READY = /^\[INFO\] xdp eth0: generic \(veth\), copy, \d+ queues?$/m

t.test('queries are answered past the sockets, and the rest through them', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start()
  await server.prints(READY)

  t.equal(await place.isPast(), true, 'IPv4')
  t.equal(await place.isPast(SERVER6), true, 'IPv6')
  t.match(await place.dig(`@${SERVER}`, 'x.example', '-b', `${CLIENT}#40001`), CLIENT)
  t.match(await place.dig(`@${SERVER}`, 'www.example.org', '+tcp'), '198.51.100.1')
  // The kernel fragments what does not fit into a frame.
  for (const host of [SERVER, SERVER6]) {
    const long = await place.dig(`@${host}`, 'long.example.org', 'TXT', '+bufsize=4096', '+ignore')
    t.match(long, /ANSWER: 60/)
    t.match(long, `SERVER: ${host}#53`)
    const short = await place.dig(`@${host}`, 'long.example.org', 'TXT', '+noedns', '+ignore')
    t.match(short, / tc /)
    // Handed over to the control thread, which has no upstream.
    t.match(await place.dig(`@${host}`, 'x.waits.example'), 'status: SERVFAIL')
  }
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0)
  t.notMatch(server.output(), /panic|Recovered|WARNING|ERROR\] (?!plugin\/errors)/)
})

t.test('native mode, and modes that fail', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  await place.server.run('ip', 'link', 'property', 'add', 'dev', 'eth0', 'altname', 'lan')
  const server = await place.start(corefile('xdp eth0 none0 lan {\n mode native\n queues 1\n}'))
  await server.prints(/^\[INFO\] xdp eth0: native \(veth\), copy, 1 queue$/m)
  const warning = 'xdp none0: its packets go to the UDP sockets: there is no such interface'
  await server.prints(new RegExp(`^\\[WARNING\\] ${warning}$`, 'm'))
  await server.prints(/WARNING. xdp lan: .*: lan is another name of eth0: use eth0$/m)
  await place.untilPast(true)
  t.equal(await place.isPast(SERVER6), true)
})

t.test('acl, log and metrics are as with the sockets', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const rules = 'prometheus 127.0.0.1:9153\n log\n acl {\n block type TXT net 192.0.2.0/24\n }'
  const server = await place.start(corefile(`xdp eth0\n ${rules}`))
  await server.prints(READY)
  const before = await place.socketDatagrams()
  for (const host of [SERVER, SERVER6]) {
    const reply = await place.dig(`@${host}`, 'mid.example.org', 'TXT', '+bufsize=4096')
    t.match(reply, host === SERVER ? 'status: REFUSED' : 'ANSWER: 25')
  }
  t.equal((await place.socketDatagrams()) - before, 0)
  await server.prints(/INFO. 192\.0\.2\.2:\d+ - \d+ "TXT IN mid\.example\.org\. udp .* REFUSED /)
  await server.prints(/INFO. \[2001:db8::2\]:\d+ - \d+ "TXT IN mid\.example\.org\. udp .* NOERROR /)
  const page = await place.metrics()
  t.match(page, /requests_total\{.*zone="example\.org\.".*proto="udp",family="1",type="TXT"\} 1$/m)
  t.match(page, /requests_total\{.*zone="example\.org\.".*proto="udp",family="2",type="TXT"\} 1$/m)
})

t.test('a reload adds, keeps and removes addresses', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start(corefile('xdp eth0', 'other.example:5353 {\n whoami\n}'))
  await server.prints(READY)
  const reload = async (text: string): Promise<void> => {
    const count = () => server.output().split('Reloading complete').length
    const before = count()
    putFile(server.directory, 'Corefile', text)
    server.process.kill('SIGUSR1')
    await until(() => count() > before, 'the reload')
  }
  const other = 'example.org:5353 {\n xdp eth0\n file zone\n}'
  await reload(corefile('xdp eth0', other))
  await place.untilPast(true, SERVER, '-p5353')
  t.equal(await place.isPast(), true)
  await reload(corefile())
  await place.untilPast(true)
  await reload(corefile(''))
  await place.untilPast(false)
  t.notMatch(await place.server.run('ip', 'link', 'show', 'eth0'), /xdp/)
  await reload(corefile())
  await place.untilPast(true)
  t.notMatch(server.output(), /panic|WARNING/)
})

t.test('new addresses, an interface that is down, gone and back', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start()
  await server.prints(READY)
  await place.server.run('ip', 'address', 'add', '192.0.2.77/24', 'dev', 'eth0')
  await place.untilPast(true, '192.0.2.77')
  const alias = ['192.0.2.78/24', 'dev', 'eth0', 'label', 'eth0:1']
  await place.server.run('ip', 'address', 'add', ...alias)
  await place.untilPast(true, '192.0.2.78')

  await place.server.run('ip', 'link', 'set', 'eth0', 'down')
  await place.server.run('ip', 'link', 'set', 'eth0', 'up')
  await place.untilPast(true)

  await place.moveInterface()
  await place.untilPast(true)

  await place.removeInterface()
  await server.prints(/WARNING\] xdp eth0: .* there is no such interface$/m)
  await place.addInterface()
  await place.untilPast(true)
  t.equal(server.output().split('INFO] xdp eth0').length, 4, 'three attachments are logged')
})

t.test('another process: killed, restarted, taken over', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const first = await place.start()
  await first.prints(READY)
  first.process.kill('SIGKILL')
  await first.exited()
  // `ip netns exec` replaces itself, so the server is gone.
  t.notMatch(await place.server.run('ip', 'link', 'show', 'eth0'), /xdp/)

  const second = await place.start(corefile(), { beside: first })
  await second.prints(READY)
  t.equal(await place.isPast(), true)
  const third = await place.start(corefile(), {
    beside: second,
    args: ['-takeover', '-pidfile', 'pid'],
  })
  t.equal(await place.isPast(), true, 'the old one has the interface')
  second.process.kill('SIGTERM')
  const asked: Promise<string>[] = []
  for (let i = 0; i < 40; i++) asked.push(place.dig(`@${SERVER}`, 'www.example.org', '+short'))
  for (const text of await Promise.all(asked)) t.equal(text.trim(), '198.51.100.1')
  await third.prints(READY)
  await place.untilPast(true)
  t.notMatch(third.output(), /WARNING/)
})

t.test('the replacement of a thread serves the interface', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start(corefile('multisocket 1\n xdp eth0'))
  await server.prints(READY)
  for (let ended = 1; ended <= 2; ended++) {
    server.process.kill('SIGWINCH')
    const count = () => server.output().split('Data thread 0 ended, starting another').length
    await until(() => count() > ended, 'the end of the thread')
    t.match(await place.dig(`@${SERVER}`, 'www.example.org', '+short'), '198.51.100.1')
    t.equal(await place.isPast(), true)
  }
  t.notMatch(server.output(), /WARNING/)
})

t.test('several queues, and a program of another process', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  await place.removeInterface()
  await place.addInterface(4)
  const other = await place.start(corefile('xdp eth0 {\n mode generic\n queues 2\n}'))
  await other.prints(/^\[INFO\] xdp eth0: generic \(veth\), copy, 2 queues$/m)
  await place.untilPast(true)
  other.process.kill('SIGTERM')
  await other.exited()
  const server = await place.start(corefile(), { beside: other })
  await server.prints(/^\[INFO\] xdp eth0: generic \(veth\), copy, 4 queues$/m)
  await place.untilPast(true)
})

t.test('three capabilities suffice; a missing one is named', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const all = ['net_bind_service', 'net_admin', 'net_raw', 'bpf']
  const text = corefile('xdp eth0 {\n queues 1\n}')
  const start = async (missing: string) => {
    const bounding = all.filter((one) => one !== missing).map((one) => `,+${one}`)
    return place.start(text, { as: ['setpriv', '--bounding-set', `-all${bounding.join('')}`] })
  }
  const table = [
    {
      missing: 'net_admin',
      warning: 'BPF_MAP_CREATE: EPERM (it requires CAP_NET_ADMIN and CAP_BPF)',
    },
    { missing: 'bpf', warning: 'BPF_MAP_CREATE: EPERM (it requires CAP_NET_ADMIN and CAP_BPF)' },
    { missing: 'net_raw', warning: 'socket AF_XDP: EPERM (it requires CAP_NET_RAW)' },
  ]
  for (const { missing, warning } of table) {
    const server = await start(missing)
    await until(() => server.output().includes(warning), warning)
    t.equal(await place.isPast(), false, 'the sockets answer')
    server.process.kill('SIGTERM')
    await server.exited()
  }
  const server = await start('')
  await server.prints(READY)
  await place.untilPast(true)
  t.notMatch(server.output(), /WARNING/)
})
