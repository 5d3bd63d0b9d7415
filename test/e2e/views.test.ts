import t from 'tap'
import { UdpClient } from '../support/client.ts'
import { startServer } from '../support/server.ts'
import { readMessage } from '../support/wire.ts'

const COREFILE = `(places) {
    bind 127.0.0.1
    metadata
    geoip {
        edns-subnet
        net 198.51.100.0/24 IE
        net 203.0.113.0/24 US
    }
}
example.org:{PORT} {
    import places
    view europe {
        expr type() == 'A' && metadata('geoip/continent/code') == 'EU'
    }
    hosts {
        192.0.2.1 example.org
    }
}
example.org:{PORT} {
    bind 127.0.0.1
    hosts {
        192.0.2.2 example.org
    }
}
`

t.test('an answer that a view chose by place carries its scope', async (t) => {
  const server = await startServer(t, { corefile: COREFILE })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const table = [
    { name: 'in Europe', type: 'A', subnet: '198.51.100.0/24', want: '192.0.2.1 scope 24' },
    {
      name: 'elsewhere: by the other block',
      type: 'A',
      subnet: '203.0.113.0/25',
      want: '192.0.2.2 scope 25',
    },
    {
      name: 'a client that is not to be located',
      type: 'A',
      subnet: '0.0.0.0/0',
      want: '192.0.2.2 scope 0',
    },
    {
      name: 'the place was not looked at',
      type: 'AAAA',
      subnet: '203.0.113.0/24',
      want: ' scope 0',
    },
  ]
  for (const { name, type, subnet, want } of table) {
    const reply = readMessage(await client.ask({ name: 'example.org', type, subnet }))
    const address = reply.answer.map(({ rdata }) => rdata.join('.'))
    t.equal(`${address} scope ${reply.options.get(8)?.[3]}`, want, name)
  }
})

t.test(
  'blocks are tried in the order of the Corefile, also behind one without a view',
  async (t) => {
    const block = (address: string, view: string): string => `example.org:{PORT} {
    bind 127.0.0.1
    ${view}
    hosts {
        ${address} example.org
    }
}
`
    const table = [
      { name: 'a view first', views: ["view a {\n expr type() == 'A'\n}", ''], want: '192.0.2.1' },
      { name: 'a view last', views: ['', "view a {\n expr type() == 'A'\n}"], want: '192.0.2.1' },
      {
        name: 'between two views',
        views: ["view a {\n expr type() == 'MX'\n}", '', "view b {\n expr type() == 'A'\n}"],
        want: '192.0.2.2',
      },
    ]
    for (const { name, views, want } of table) {
      const corefile = views.map((view, i) => block(`192.0.2.${i + 1}`, view)).join('')
      const server = await startServer(t, { corefile })
      const client = await UdpClient.connect(server.port)
      t.teardown(() => client.close())
      const reply = readMessage(await client.ask({ name: 'example.org', type: 'A' }))
      t.equal(reply.answer.map(({ rdata }) => rdata.join('.')).join(), want, name)
    }
  },
)
