import t, { type Test } from 'tap'
import { Query } from '../../../../src/dns/message/query.ts'
import { type AddressFamily, printAddress } from '../../../../src/dns/text/address.ts'
import { ProxyAction, type ProxyRules } from '../../../../src/transport/proxy/rules.ts'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../../../src/transport/udp/batch/socket.ts'
import { proxyHeader } from '../../../support/proxy-header.ts'
import { type Client, udpClient } from '../../client.ts'
import { until } from '../../echo.ts'

const RULES: ProxyRules = {
  actionFor: () => ProxyAction.Use,
  trackingMs: 1e9,
  sessionsMax: 10,
  keepsTlvs: true,
  noteFault: () => {},
}

/** The two sockets of an address: that of the control thread, and one attached to it as in a data thread. */
async function open(t: Test, host: string, peer = '127.0.0.1') {
  const libc = loadLibc()
  const owner = new BatchSocket(libc, { host, port: 0 })
  const socket = new BatchSocket(libc, { fd: owner.fd, host, port: owner.port })
  const client = await udpClient(owner.port, peer)
  t.teardown(async () => {
    await client.close()
    socket.detach()
    owner.close()
  })
  return { owner, socket, client }
}

async function receive(socket: BatchSocket, client: Client, packet: Uint8Array): Promise<void> {
  client.send(packet)
  await until('it is in', () => socket.receive() === 1)
}

function show(query: Query): string {
  const { peerAddress, peerFamily, peerPort, packet, packetOctets } = query
  const { proxyTlvs, proxyTlvsAt, proxyTlvsOctets } = query
  const tlvs = proxyTlvs.subarray(proxyTlvsAt, proxyTlvsAt + proxyTlvsOctets)
  const client = `${printAddress(peerAddress, peerFamily as AddressFamily)} ${peerPort}`
  return `${client} ${Buffer.from(packet.subarray(0, packetOctets)).toString('latin1')} ${tlvs}`
}

for (const [host, peer] of [
  ['127.0.0.1', '127.0.0.1'],
  ['::', '127.0.0.1'],
  ['::1', '::1'],
] as const) {
  t.test(`clients behind a proxy on ${host}`, async (t) => {
    const { owner, socket, client } = await open(t, host, peer)
    socket.setProxy('dns://:53', RULES)
    const query = new Query()
    let rounds = 0
    for (const octets of [0, 1, 12, 460, 484, 485, 600, 2000]) {
      for (const tlvs of [Buffer.alloc(0), Buffer.from([1, 2, 3]), Buffer.alloc(600, 7)]) {
        const source = octets % 2 === 0 ? '192.0.2.7' : '2001:db8::7'
        const body = Buffer.alloc(octets, 'body')
        const header = proxyHeader({ source, tlvs })
        await receive(socket, client, Buffer.concat([header, body]))
        const what = `${octets} octets, ${tlvs.length} of TLVs`
        const want = `${source} 4711 ${body} ${new Uint8Array(tlvs)}`
        // A header without a message begins a session.
        t.equal(socket.describe(0, query), octets > 0, what)
        if (octets > 0) t.equal(show(query), want, what)
        if (octets > 0) t.not(query.packetAt, -1, 'it is in the packet memory')
        await receive(socket, client, Buffer.from('next'))
        t.equal(socket.describe(0, query), true, what)
        t.equal(show(query), `${source} 4711 next ${new Uint8Array(tlvs)}`, `${what}, tracked`)
        // A data thread hands it over.
        const handed = new Query()
        const unit = owner.takeUnit(socket.copyUnit(0, query), handed)
        t.equal(show(handed), show(query), `${what}, handed over`)
        owner.reply(unit, Buffer.from('late'), 4)
        owner.giveBack(unit)
        t.equal(owner.flush(), true)
        socket.room()
        socket.reply(0, Buffer.from('soon'), 4)
        t.equal(socket.flush(), true)
        rounds++
        await until('the proxy has both', () => client.received.length === 2 * rounds)
        t.strictSame(client.received.slice(-2).map(String).sort(), ['late', 'soon'])
      }
    }
  })
}

t.test('a reload ends and begins the use of headers', async (t) => {
  const { owner, socket, client } = await open(t, '127.0.0.1')
  const query = new Query()
  const own = `127.0.0.1 ${client.port}`
  const wrapped = Buffer.concat([proxyHeader(), Buffer.from('x')])
  const seen = async (packet: Uint8Array): Promise<string> => {
    await receive(socket, client, packet)
    return socket.describe(0, query) ? show(query).trim() : 'drop'
  }
  t.equal(await seen(wrapped), `${own} ${wrapped.toString('latin1')}`.trim())
  const unit = owner.takeUnit(socket.copyUnit(0, query), query)
  t.equal(show(query).trim(), `${own} ${wrapped.toString('latin1')}`.trim())
  owner.giveBack(unit)
  socket.setProxy('dns://:53', RULES)
  t.equal(await seen(wrapped), '192.0.2.7 4711 x')
  socket.setProxy('dns://:53', { ...RULES, keepsTlvs: false })
  t.equal(await seen(Buffer.from('y')), '192.0.2.7 4711 y', 'the session is kept')
  socket.setProxy('dns://:53', { ...RULES, trackingMs: 0 })
  t.equal(await seen(Buffer.from('y')), `${own} y`, 'its limits changed')
  socket.setProxy('dns://:53', undefined)
  t.equal(await seen(Buffer.from('y')), `${own} y`)
})
