/*
 * Claim: parseQuery takes at most 300 ns for an ordinary query with EDNS and a client subnet.
 * Run after `npm run build`.
 */
import { parseQuery } from '../dist/dns/message/parse-query.js'
import { Query } from '../dist/dns/message/query.js'
import { report } from './rounds.mjs'

const PLAIN = '12340120000100000000000003617070016b076578616d706c6503636f6d0000010001'
const OPT_ECS_COOKIE =
  '00002904d0000080000017' + '0008000700011800510245' + '000a00082464c4abcf10c957'

const plain = Buffer.from(PLAIN, 'hex')
const edns = Buffer.from(`${PLAIN}${OPT_ECS_COOKIE}`, 'hex')
edns[11] = 1
const query = new Query()

report('parseQuery, app.k.example.com A', () => parseQuery(query, plain, plain.length), 0)
report('parseQuery, with EDNS, ECS and cookie', () => parseQuery(query, edns, edns.length), 0)
