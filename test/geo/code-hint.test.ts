import fc from 'fast-check'
import t from 'tap'
import { scanGeoCode } from '../../src/geo/code.ts'
import { geoCodeHint } from '../../src/geo/code-hint.ts'

const TABLE: readonly (readonly [text: string, code: string])[] = [
  ['UK', 'GB'],
  ['uk', 'GB'],
  ['GEO-UK', 'GB'],
  ['EL', 'GR'],
  ['eu', 'GEO-EU'],
  ['EU', 'GEO-EU'],
  ['europe', 'GEO-EU'],
  ['GEO-DE', 'DE'],
  ['GEO-EUROPE', 'GEO-EU'],
  ['geo_eu', 'GEO-EU'],
  ['US_CA', 'US-CA'],
  ['UK-LND', 'GB-LND'],
  ['ASN64500', 'AS64500'],
  ['AS 64500', 'AS64500'],
  ['default', '*'],
  ['ZZ', ''],
  ['', ''],
]

t.test('the code that was probably meant', (t) => {
  for (const [text, code] of TABLE) {
    t.equal(geoCodeHint(text), code === '' ? '' : `; did you mean ${code}?`, text)
  }
  t.end()
})

t.test('a hint is a valid code', (t) => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const [, code] = /^; did you mean (.*)\?$/.exec(geoCodeHint(text)) ?? []
      return code === undefined || scanGeoCode(code) !== undefined
    }),
  )
  t.end()
})
