// What a query costs that `rewrite`, `template` or `view` answers with a regular expression: parse, links, compose.

import { Random } from '../dist/base/random.js'
import { LinearRegExp } from '../dist/base/re2/linear-regexp.js'
import { compose } from '../dist/dns/message/compose.js'
import { parseQuery } from '../dist/dns/message/parse-query.js'
import { Section } from '../dist/dns/message/section.js'
import { scanName } from '../dist/dns/name/name.js'
import { CounterSlots } from '../dist/plugin/counter-slots.js'
import { compileExpression } from '../dist/plugin/expression/expression.js'
import { Transaction } from '../dist/plugin/transaction.js'
import { regexChange } from '../dist/plugins/rewrite/names.js'
import { Rewrite } from '../dist/plugins/rewrite/rewrite.js'
import { NameRule } from '../dist/plugins/rewrite/rules.js'
import { Conditions } from '../dist/plugins/template/conditions.js'
import { GoTemplate } from '../dist/plugins/template/go-template.js'
import { Template } from '../dist/plugins/template/template.js'
import { matchesAll } from '../dist/plugins/view/view.js'
import { ZoneSet } from '../dist/zone/lookup/zone-set.js'
import { report } from './rounds.mjs'

const server = { address: 'dns://:53', lookupInternally: () => undefined, release: () => {} }
const tx = new Transaction(new Random(1), server)
tx.query.peerAddress.set([10, 244, 1, 7])
tx.query.peerAddressOctets = 4
tx.zone = '.'
const out = new Uint8Array(new ArrayBuffer(4096))

const rdata = new Uint8Array(4)
const last = {
  name: 'last',
  serve: (tx) => {
    tx.response.add(0, tx.query.qname, 0, 1, 1, 60, rdata, 0, 4)
    tx.response.answeredBy = 'last'
    return 0
  },
}

function rewrite(pattern, to) {
  const rule = new NameRule(regexChange(new LinearRegExp(pattern), to), true, [])
  return new Rewrite(last, [{ rule, stops: true }])
}

function template(pattern, text) {
  const record = { section: Section.Answer, source: text, text: new GoTemplate(text) }
  return new Template(
    last,
    [
      {
        ...{ zones: new ZoneSet([Uint8Array.of(0)]), zoneTexts: ['.'], qclass: 1, qtype: 1 },
        ...{ patterns: [new LinearRegExp(pattern)], conditions: new Conditions() },
        ...{ records: [{ ...record, record: undefined }], rcode: 0, edeCode: -1, edeText: rdata },
        ...{ fallthrough: { through: () => true }, counterStart: 0 },
      },
    ],
    new CounterSlots(),
    () => '',
  )
}

function view(expression) {
  const term = compileExpression(expression, undefined)
  return { serve: (tx) => (matchesAll([term], tx) ? last.serve(tx) : 3) }
}

const IP = '^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)-(?P<c>[0-9]+)-(?P<d>[0-9]+)[.]example[.]$'
const A = '{{ .Name }} 60 IN A {{ .Group.a }}.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}'
const cases = [
  [
    'rewrite, match',
    'ftp.x-us-west-1.example.org.',
    rewrite('^(.*)-us-west-1\\.example\\.org\\.$', '{1}.coredns.rocks.'),
  ],
  [
    'rewrite, no match',
    'www.example.net.',
    rewrite('^(.*)-us-west-1\\.example\\.org\\.$', '{1}.coredns.rocks.'),
  ],
  ['template, match', 'ip-10-0-0-12.example.', template(IP, A)],
  ['template, no match', 'host-10.example.', template(IP, A)],
  ['view, match', 'www.example.org.', view("name() matches '^(www|api)[.]example[.]org[.]$'")],
]
for (const [name, owner, link] of cases) {
  const qname = scanName(owner)
  const packet = new Uint8Array([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...qname, 0, 1, 0, 1])
  const run = () => {
    if (parseQuery(tx.query, packet, packet.length) !== 0) throw new Error('not a query')
    tx.response.reset(tx.query)
    const status = link.serve(tx)
    if (status === 0) compose(tx.query, tx.response, out, 1232)
    return status
  }
  report(name, run, run(), 100_000)
}
