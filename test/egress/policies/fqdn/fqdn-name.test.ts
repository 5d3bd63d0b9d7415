import t from 'tap'
import { printName } from '../../../../src/dns/name/name.ts'
import { scanFqdn } from '../../../../src/egress/policies/fqdn/fqdn-name.ts'

t.test('names of policies', async (t) => {
  const label = 'a'.repeat(63)
  const table: [string, string | undefined][] = [
    ['example.com', 'example.com.'],
    ['Example.COM.', 'example.com.'],
    ['com', 'com.'],
    ['1.2.3.4', '1.2.3.4.'],
    ['0x10.1', '0x10.1.'],
    [`${label}.com`, `${label}.com.`],
    ['münchen.example', 'xn--mnchen-3ya.example.'],
    ['xn--mnchen-3ya.example', 'xn--mnchen-3ya.example.'],
    ['日本.example', 'xn--wgv71a.example.'],
    // Refused by the definitions, but valid in DNS.
    ['_dmarc.example.com', '_dmarc.example.com.'],
    ['xn--zzzzzzz.example', 'xn--zzzzzzz.example.'],
    // Versions of Node.js convert it in different ways.
    ['xn--a.example', 'xn--a.example.'],
    ['*.example.com', undefined],
    ['-a.example', undefined],
    ['a-.example', undefined],
    ['a..b', undefined],
    ['', undefined],
    ['.', undefined],
    [`a${label}.com`, undefined],
    ['a.'.repeat(128), undefined],
    ['exa mple.com', undefined],
    ['example.com/', undefined],
    ['a\\.b.example', undefined],
    ['a@b', undefined],
    ['☃.example/', undefined],
    ['☃.example／b', undefined],
    ['bücher。example', 'xn--bcher-kva.example.'],
  ]
  for (const [text, want] of table) {
    const name = scanFqdn(text)
    t.equal(name === undefined ? undefined : printName(name), want, JSON.stringify(text))
  }
})
