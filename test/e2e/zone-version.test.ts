import t from 'tap'
import { askEach } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

const ZONE = `
$ORIGIN z.example.
$TTL 300
@     IN SOA ns1 hostmaster 4275878552 7200 1800 86400 60
      IN NS  ns1
ns1   IN A   192.0.2.53
alias IN CNAME www.y.example.
sub   IN NS  ns.other.test.
`

const COREFILE = `
z.example:{PORT} {
    bind 127.0.0.1
    file db.z.example
}
.:{PORT} {
    bind 127.0.0.1
    acl {
        block net 127.0.0.0/8
    }
    whoami
}
`

/** Serial 4275878552 of a zone with two labels, as dig prints an option that it does not know, or knows. */
const VERSION = /02 00 fe dc ba 98|SOA-SERIAL: 4275878552/

t.test('the version of a zone (RFC 9660)', needs('dig'), async (t) => {
  const server = await startServer(t, { corefile: COREFILE, files: { 'db.z.example': ZONE } })
  const table = [
    { name: 'ns1.z.example', has: true },
    { name: 'NS1.z.example', has: true },
    { name: 'nothing.z.example', has: true },
    { name: 'host.sub.z.example', has: true },
    { name: 'alias.z.example', has: true },
    { name: 'elsewhere.test', has: false },
  ]
  const asked = await askEach(
    server.port,
    ['+ednsopt=19'],
    table.map(({ name }) => [name, 'A']),
  )
  for (const [i, { name, has }] of table.entries()) {
    t.equal(VERSION.test(asked[i]!.text), has, `${name}: ${asked[i]!.text}`)
  }
  const [plain] = await askEach(server.port, [], [['ns1.z.example', 'A']])
  t.notMatch(plain!.text, VERSION, 'not asked')
})
