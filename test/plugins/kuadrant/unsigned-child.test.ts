import t from 'tap'
import { EdeCode } from '../../../src/dns/iana/options.ts'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { scanType } from '../../../src/dns/iana/types.ts'
import { NO_FALLTHROUGH } from '../../../src/plugin/arguments/fallthrough.ts'
import { CHAIN_END } from '../../../src/plugin/chain-end.ts'
import { KuadrantHandler } from '../../../src/plugins/kuadrant/kuadrant.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { ZoneSet } from '../../../src/zone/lookup/zone-set.ts'
import { transaction } from '../../support/transaction.ts'
import { imageOf } from '../../support/zone-lines.ts'
import { wire } from '../../support/zone-names.ts'

const PARENT = ['example.org. 60 SOA 30', 'www.example.org. 60 A 192.0.2.1']
const CHILD = ['sub.example.org. 60 SOA 30', 'www.sub.example.org. 60 A 192.0.2.2']
const { NOERROR, NXDOMAIN, SERVFAIL } = Rcode

// Name, type, and the rcode while the zone below is not signed yet, and after it is.
const CASES = [
  ['www.example.org. A', NOERROR, NOERROR],
  ['nope.example.org. A', NXDOMAIN, NXDOMAIN],
  ['sub.example.org. A', SERVFAIL, NOERROR],
  ['www.sub.example.org. A', SERVFAIL, NOERROR],
  ['nope.sub.example.org. A', SERVFAIL, NXDOMAIN],
  ['sub.example.org. DS', SERVFAIL, NOERROR],
  ['a.sub.example.org. DS', SERVFAIL, NXDOMAIN],
] as const

t.test('the zone above does not answer for a zone that is not signed yet', async (t) => {
  const zones = new ZoneSet([wire('example.org.'), wire('sub.example.org.')])
  const nested = new ZoneSet([wire('sub.example.org.')])
  for (const [index, lines] of [PARENT, [...PARENT, ...CHILD]].entries()) {
    const answerer = new ZoneAnswerer(imageOf(lines).reader())
    const handler = new KuadrantHandler(CHAIN_END, { answerer }, NO_FALLTHROUGH, zones, nested)
    for (const [question, ...rcodes] of CASES) {
      const [name = '', type = ''] = question.split(' ')
      const tx = transaction({ name, type: scanType(type)! })
      const status = await handler.serve(tx)
      t.equal(status, rcodes[index], `${question} ${index}`)
      t.equal(tx.response.edeCode, status === SERVFAIL ? EdeCode.NOT_READY : -1, question)
      if (type !== 'DS') {
        const isFound = handler.find(tx.query) !== undefined
        t.equal(isFound, status !== SERVFAIL, `${question}: answered directly`)
      }
    }
  }
})
