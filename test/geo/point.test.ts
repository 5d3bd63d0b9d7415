import t from 'tap'
import { distanceKm, printCoordinates, scanPoint } from '../../src/geo/point.ts'

const point = (text: string) => scanPoint(text)!

t.test('distances of the great circle', async (t) => {
  // Expected: half the circumference is π · 6371.0088 km; the cities by another calculator.
  const half = Math.PI * 6371.0088
  const rows: [string, string, number][] = [
    ['52.52,13.40', '52.52,13.40', 0],
    ['52.52,13.40', '48.86,2.35', 878],
    ['51.51,-0.13', '40.71,-74.01', 5570],
    ['-33.87,151.21', '-36.85,174.76', 2156],
    ['90,0', '-90,0', half],
    ['0,0', '0,180', half],
    ['10,20', '-10,-160', half],
    ['90,0', '89,0', half / 180],
    ['89,0', '89,180', half / 90],
    ['89,90', '89,-90', half / 90],
    ['0,179.5', '0,-179.5', half / 180],
    ['60,0', '60,1', (half / 180) * 0.5],
  ]
  for (const [a, b, km] of rows) {
    const found = distanceKm(point(a), point(b))
    t.ok(Math.abs(found - km) <= Math.max(0.1, km * 0.002), `${a} to ${b}: ${found} for ${km}`)
    t.equal(found, distanceKm(point(b), point(a)))
  }
})

t.test('the text of a point is canonical', async (t) => {
  const rows: [string, string][] = [
    ['52.52,13.40', '52.52,13.40'],
    [' 52.5 , +13.4 ', '52.50,13.40'],
    ['52.519999,13.404', '52.52,13.40'],
    ['-0.001,-0.001', '0.00,0.00'],
    ['0,-180', '0.00,180.00'],
    ['0,-179.999', '0.00,180.00'],
    ['90,77', '90.00,0.00'],
    ['-90,-77', '-90.00,0.00'],
    ['-33.87,151.21', '-33.87,151.21'],
  ]
  for (const [text, expected] of rows) {
    t.equal(point(text).text, expected, text)
    t.strictSame(scanPoint(expected), point(text), 'reading it again gives the same point')
  }
  const bad = ['', '1', '1,2,3', 'a,b', '91,0', '0,181', '1e1,0', 'NaN,0', '1.,2', '0x1,2', '1;2']
  for (const text of [...bad, '5252,13', '1,', ',1', 'Infinity,0', '52.52 13.40']) {
    t.equal(scanPoint(text), undefined, text)
  }
})

t.test('coordinates are printed without the noise of 32-bit numbers', async (t) => {
  const client = { latitude: Math.fround(51.4036), longitude: Math.fround(-0.7618) }
  t.equal(printCoordinates(client), '51.4036,-0.7618')
  t.equal(printCoordinates({ latitude: 0, longitude: -90 }), '0,-90')
  t.equal(printCoordinates(undefined), '')
})
