import t from 'tap'
import { scanGeoCode } from '../../src/geo/code.ts'
import { continentOf } from '../../src/geo/countries.ts'

t.test('geo codes stand on the rung that their form says', async (t) => {
  const table = [
    { given: '*', rung: 'default', text: '*' },
    { given: 'GEO-EU', rung: 'continent', text: 'GEO-EU' },
    { given: 'geo-na', rung: 'continent', text: 'GEO-NA' },
    { given: 'IE', rung: 'country', text: 'IE' },
    { given: 'us', rung: 'country', text: 'US' },
    { given: 'AS', rung: 'country', text: 'AS' },
    { given: 'US-CA', rung: 'subdivision', text: 'US-CA' },
    { given: 'GB-ENG', rung: 'subdivision', text: 'GB-ENG' },
    { given: 'FR-2A', rung: 'subdivision', text: 'FR-2A' },
    { given: 'AS64500', rung: 'asn', text: 'AS64500' },
    { given: 'AS4294967295', rung: 'asn', text: 'AS4294967295' },
    { given: 'NET-office', rung: 'net', text: 'NET-OFFICE' },
    { given: `NET-${'X'.repeat(63)}`, rung: 'net', text: `NET-${'X'.repeat(63)}` },
  ]
  for (const { given, rung, text } of table) t.same(scanGeoCode(given), { rung, text }, given)
})

t.test('invalid geo codes are refused', async (t) => {
  const table = [
    { name: 'nothing', given: '' },
    { name: 'a word', given: 'notageocode' },
    { name: 'a continent without its prefix', given: 'EU' },
    { name: 'an unknown continent', given: 'GEO-XX' },
    { name: 'a country with the prefix of continents', given: 'GEO-US' },
    { name: 'a country that ISO does not list', given: 'UK' },
    { name: 'a user-assigned country', given: 'ZZ' },
    { name: 'three letters', given: 'USA' },
    { name: 'a subdivision of no country', given: 'XX-CA' },
    { name: 'a subdivision that is too long', given: 'US-CALI' },
    { name: 'an empty subdivision', given: 'US-' },
    { name: 'AS0', given: 'AS0' },
    { name: 'an ASN with a leading zero', given: 'AS0123' },
    { name: 'an ASN beyond 32 bits', given: 'AS4294967296' },
    { name: 'a net without a label', given: 'NET-' },
    { name: 'a net with a blank', given: 'NET-A B' },
    { name: 'a label that is too long', given: `NET-${'X'.repeat(64)}` },
    { name: 'a prototype property', given: '__proto__' },
    { name: 'a letter that grows in upper case', given: 'ß' },
  ]
  for (const { name, given } of table) t.equal(scanGeoCode(given), undefined, name)
})

t.test('the table of countries is that of ISO 3166-1, and Kosovo', async (t) => {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  const codes = letters.flatMap((first) => letters.map((second) => `${first}${second}`))
  t.equal(codes.filter((code) => continentOf(code) !== '').length, 250)
  const table = { IE: 'EU', US: 'NA', JP: 'AS', BR: 'SA', AU: 'OC', ZA: 'AF', AQ: 'AN', TR: 'AS' }
  for (const [country, continent] of Object.entries(table)) {
    t.equal(continentOf(country), continent, country)
  }
  t.equal(continentOf('EU'), '')
})
