import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import { printExplanation } from '../../src/explain/print.ts'
import { loadText } from './worlds.ts'

const COREFILE = `k.example.com:5300 {
  root {DIR}
  acl {
    block type TXT net 10.9.0.0/16
    drop net 10.8.0.0/16
  }
  cache
  rewrite name old.k.example.com www.k.example.com
  rewrite name one.k.example.com www.k.example.com
  rewrite name exact gone.k.example.com www.example.org
  template IN A made.k.example.com {
    answer "{{ .Name }} 60 IN A 192.0.2.9"
  }
  kuadrant {
    manifests records
    explain 10.0.0.0/8
    fallthrough
  }
  forward . 127.0.0.1:{PORT}
}
example.net:5300 {
  root {DIR}
  hosts hosts.txt {
    192.0.2.12 inline.example.net
    fallthrough
  }
  file db.example.net
}
auto.example:5300 {
  root {DIR}
  auto {
    directory zones
  }
}
copy.example:5300 {
  secondary {
    transfer from 127.0.0.1:{PORT}
  }
}
`
const ZONE = `@ 60 IN SOA ns host 7 60 60 60 60
@ 60 IN NS ns
ns 60 IN A 192.0.2.53
www 60 IN A 192.0.2.80
alias 60 IN CNAME www.k.example.com.
`

const endpoint = (name: string, setIdentifier: string, target: string): object => ({
  dnsName: `${name}.k.example.com`,
  recordType: 'A',
  recordTTL: 60,
  setIdentifier,
  targets: [target],
  providerSpecific: [{ name: 'weight', value: '100' }],
})
const RECORD = {
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'r', namespace: 'n' },
  spec: {
    rootHost: 'k.example.com',
    endpoints: [
      endpoint('www', 'a', '192.0.2.1'),
      endpoint('www', 'b', '192.0.2.2'),
      endpoint('one', 'a', '192.0.2.3'),
      endpoint('made', 'a', '192.0.2.4'),
      {
        dnsName: 'out.k.example.com',
        recordType: 'CNAME',
        recordTTL: 60,
        targets: ['www.k.example.com'],
      },
    ],
  },
}

const FORWARDED =
  /^end: the directive forward would query another server; an explanation does not$/m

t.test(
  'an explanation is true also behind other directives, and no query is forwarded',
  async (t) => {
    const upstream = createSocket('udp4')
    let asked = 0
    upstream.on('message', () => asked++)
    upstream.bind(0, '127.0.0.1')
    await once(upstream, 'listening')
    t.teardown(() => upstream.close())
    const directory = t.testdir({
      records: { 'r.json': JSON.stringify(RECORD) },
      'hosts.txt': '192.0.2.11 file.example.net\n',
      'db.example.net': ZONE,
      zones: { 'db.auto.example': ZONE },
    })
    const text = COREFILE.replaceAll('{DIR}', directory)
    const { instance } = await loadText(t, text.replaceAll('{PORT}', `${upstream.address().port}`))
    const explainer = await Explainer.open(instance)
    t.teardown(() => explainer.close())
    const ask = (name: string, type: number, client: string): string => {
      const explanation = explainer.explain({
        ...{
          name: scanName(name.endsWith('.') ? name : `${name}.k.example.com.`)!,
          type,
          seed: 1,
          subnet: undefined,
        },
        source: scanAddress(client)!,
      })
      return printExplanation(explanation).join('\n')
    }
    const USUAL = '10.1.2.3'
    const table: readonly [string, number, string, RegExp, RegExp?][] = [
      ['www', 1, USUAL, /ladder:\n +whole set: decided: a 50% .*, b 50% /],
      ['out', 1, USUAL, /step 2: www.*\n.*\n.*\n +ladder:/],
      ['lost', 1, USUAL, FORWARDED, /rewrite|kuadrant|no reply/],
      ['gone', 1, USUAL, FORWARDED, /rewrite|kuadrant|no reply/],
      [
        '_explain.www',
        16,
        USUAL,
        /^end: the server answers with an explanation of www\.k\./m,
        /FAIL/,
      ],
      ['_explain.www', 16, '192.0.2.1', FORWARDED, /explanation of/],
      ['old', 1, USUAL, /note: another directive has changed the name or the records$/m, /ladder/],
      ['one', 1, USUAL, /note: another directive has changed/, /192\.0\.2\.3|ladder/],
      ['made', 1, USUAL, /note: template answers, not kuadrant[\s\S]*: set by template/, /\* a/],
      ['www', 16, '10.9.1.1', /answered by acl[\s\S]*^end: REFUSED$/m],
      [
        'inline.example.net.',
        1,
        USUAL,
        /note: hosts answers, not file[\s\S]*served: 192\.0\.2\.12/,
      ],
      ['file.example.net.', 1, USUAL, /served: 192\.0\.2\.11/],
      [
        'www.example.net.',
        1,
        USUAL,
        /answered by file\n[\s\S]*serial 7\)\n +served: 192\.0\.2\.80/,
      ],
      ['lost.example.net.', 1, USUAL, /NXDOMAIN[\s\S]*^end: lost\.example\.net\. does not exist$/m],
      [
        'alias.auto.example.',
        1,
        USUAL,
        /by auto\n[\s\S]*serial 7\)\n[\s\S]*ladder:\n +whole set: dec/,
      ],
      [
        'www.copy.example.',
        1,
        USUAL,
        /not known\n[\s\S]*^end: not known: secondary: only a running server has the zone; to ask a running server, add @SERVER$/m,
        /SERVFAIL|would query/,
      ],
      ['www', 1, '10.8.1.1', /^end: the server sends no reply$/m, /answered by/],
    ]
    for (const [name, type, client, says, saysNot] of table) {
      const explained = ask(name, type, client)
      t.match(explained, says, `${name} ${type} ${client}`)
      if (saysNot !== undefined) t.notMatch(explained, saysNot, `not ${name} ${type} ${client}`)
    }
    // Whatever was sent before arrives before this.
    const last = once(upstream, 'message')
    upstream.send('end', upstream.address().port, '127.0.0.1')
    await last
    t.equal(asked, 1, 'no query was forwarded')
  },
)
