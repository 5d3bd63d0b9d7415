import t from 'tap'
import { uncompressedOctets } from '../../../src/dns/message/compose.ts'
import type { Response } from '../../../src/dns/message/response.ts'
import { type QuerySpec, wireName } from '../../support/wire.ts'
import { ask, send } from './compose-stage.ts'

t.test('EDNS in replies', async (t) => {
  const nsid = Buffer.from('here')
  const ecs = (...data: number[]): [number, Uint8Array] => [8, Uint8Array.from(data)]
  const table: {
    name: string
    edns?: NonNullable<QuerySpec['edns']>
    set?: Partial<Response>
    tcp?: boolean
    want: Record<number, string> | undefined
  }[] = [
    { name: 'none to a client that sent none', want: undefined },
    { name: 'forced upon it', set: { forceEdns: true }, want: {} },
    { name: 'none of its options without EDNS', set: { nsid }, want: undefined },
    { name: 'an empty one', edns: {}, want: {} },
    {
      name: 'NSID if asked',
      edns: { options: [[3, new Uint8Array(0)]] },
      set: { nsid },
      want: { 3: '68657265' },
    },
    { name: 'no NSID if not asked', edns: {}, set: { nsid }, want: {} },
    {
      name: 'the version of a zone if asked',
      edns: { options: [[19, new Uint8Array(0)]] },
      set: { zoneLabels: 2, zoneSerial: 0xfedcba98 },
      want: { 19: '0200fedcba98' },
    },
    {
      name: 'the agent for reports of errors, asked or not',
      edns: {},
      set: { reportAgent: wireName('er.example') },
      want: { 18: '026572076578616d706c6500' },
    },
    { name: 'no version if not asked', edns: {}, set: { zoneLabels: 2 }, want: {} },
    { name: 'no version if none is known', edns: { options: [[19, new Uint8Array(0)]] }, want: {} },
    { name: 'no NSID if there is none', edns: { options: [[3, new Uint8Array(0)]] }, want: {} },
    {
      name: 'ECS with scope 0 by default',
      edns: { options: [ecs(0, 1, 24, 0, 192, 0, 2)] },
      want: { 8: '00011800c00002' },
    },
    {
      name: 'ECS with the scope of the answer',
      edns: { options: [ecs(0, 1, 24, 0, 192, 0, 2)] },
      set: { scopeBits: 16 },
      want: { 8: '00011810c00002' },
    },
    {
      name: 'no scope where the client hid its address',
      edns: { options: [ecs(0, 2, 0, 0)] },
      set: { scopeBits: 16 },
      want: { 8: '00020000' },
    },
    {
      name: 'ECS of no family where the client wants no subnet used',
      edns: { options: [ecs(0, 0, 0, 0)] },
      set: { scopeBits: 16 },
      want: { 8: '00000000' },
    },
    { name: 'no ECS unasked', edns: {}, set: { scopeBits: 16 }, want: {} },
    {
      name: 'EDE with text',
      edns: {},
      set: { edeCode: 15, edeText: Buffer.from('no') },
      want: { 15: '000f6e6f' },
    },
    { name: 'EDE code 0', edns: {}, set: { edeCode: 0 }, want: { 15: '0000' } },
    { name: 'no echo of a client cookie', edns: { options: [[10, new Uint8Array(8)]] }, want: {} },
    {
      name: 'client and server cookie',
      edns: { options: [[10, Buffer.from('12345678')]] },
      set: { serverCookieOctets: 16 },
      want: { 10: `3132333435363738${'00'.repeat(16)}` },
    },
    {
      name: 'keepalive on TCP',
      tcp: true,
      edns: { options: [[11, new Uint8Array(0)]] },
      set: { keepaliveDeciseconds: 100 },
      want: { 11: '0064' },
    },
    {
      name: 'no keepalive on UDP',
      edns: { options: [[11, new Uint8Array(0)]] },
      set: { keepaliveDeciseconds: 100 },
      want: {},
    },
  ]
  for (const { name, edns, set, tcp, want } of table) {
    const { query, response } = ask(edns === undefined ? { name: 'a' } : { name: 'a', edns })
    query.protocol = tcp ? 1 : 0
    Object.assign(response, set)
    const { message, bytes } = send(query, response)
    const got = Object.fromEntries(
      [...message.options].map(([code, data]) => [code, Buffer.from(data).toString('hex')]),
    )
    t.strictSame(message.opt === undefined ? undefined : got, want, name)
    t.equal(uncompressedOctets(query, response), bytes.length, `${name}: size`)
  }
})

t.test('OPT says our payload size, DO and the upper bits of the rcode', async (t) => {
  const { query, response } = ask({ name: 'a', edns: { flags: 0x8000, payload: 4000 } })
  response.rcode = 16
  response.payloadOctets = 1400
  const { message } = send(query, response)
  t.equal(message.rcode, 16)
  t.equal(message.opt?.rrclass, 1400)
  t.equal(message.opt?.ttl, 0x01008000)
})
