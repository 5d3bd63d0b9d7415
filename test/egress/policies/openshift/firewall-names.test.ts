import t from 'tap'
import {
  namesOfRules,
  RULES_MAX,
} from '../../../../src/egress/policies/openshift/firewall-names.ts'

const LABEL_63 = 'a'.repeat(63)

const NAMES: { dnsName: string; want: string | undefined }[] = [
  { dnsName: 'www.example.com', want: 'www.example.com.' },
  { dnsName: 'www.example.com.', want: 'www.example.com.' },
  { dnsName: 'WWW.Example.COM', want: 'www.example.com.' },
  { dnsName: '*.example.com', want: '*.example.com.' },
  { dnsName: `${LABEL_63}.com`, want: `${LABEL_63}.com.` },
  { dnsName: '1.2.3.4', want: '1.2.3.4.' },
  { dnsName: `${'a.'.repeat(126)}a`, want: `${'a.'.repeat(126)}a.` },
  { dnsName: `${'a.'.repeat(127)}a`, want: undefined },
  { dnsName: 'com', want: undefined },
  { dnsName: '*.com', want: undefined },
  { dnsName: '*', want: undefined },
  { dnsName: '*.*.example.com', want: undefined },
  { dnsName: 'www.*.com', want: undefined },
  { dnsName: `a${LABEL_63}.com`, want: undefined },
  { dnsName: '-example.com', want: undefined },
  { dnsName: 'example-.com', want: undefined },
  { dnsName: 'a_b.example.com', want: undefined },
  { dnsName: 'www..com', want: undefined },
  { dnsName: 'www.example.com..', want: undefined },
  { dnsName: 'www.example.com\n', want: undefined },
  { dnsName: '.', want: undefined },
]

t.test('a name is lower case and ends with a dot, or it is invalid', async (t) => {
  for (const { dnsName, want } of NAMES) {
    const { names, invalid } = namesOfRules([dnsName])
    t.strictSame([...names], want === undefined ? [] : [want], dnsName)
    t.equal(invalid, want === undefined ? 0 : undefined, dnsName)
  }
})

t.test('one invalid name leaves none', async (t) => {
  const { names, invalid } = namesOfRules(['www.example.com', '', 'com', '_'])
  t.strictSame([...names], [])
  t.equal(invalid, 2)
})

t.test('names are counted once, and rules without a name not at all', async (t) => {
  const { names } = namesOfRules(['', 'a.example.com', 'A.example.com.', '', '*.example.com'])
  t.strictSame([...names], ['a.example.com.', '*.example.com.'])
})

t.test('rules beyond the bound do not count, valid or not', async (t) => {
  const rules = Array.from({ length: RULES_MAX }, () => '')
  rules[RULES_MAX - 1] = 'last.example.com'
  const { names, invalid } = namesOfRules([...rules, 'next.example.com', 'com'])
  t.strictSame([...names], ['last.example.com.'])
  t.equal(invalid, undefined)
})
