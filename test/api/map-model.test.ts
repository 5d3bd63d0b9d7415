import fc from 'fast-check'
import t from 'tap'
import {
  fillOf,
  labelOf,
  move,
  orderOf,
  rowsOf,
  WHOLE,
  WORLD_HEIGHT,
  WORLD_WIDTH,
  zoomAt,
} from '../../src/api/console/client/views/map/model.ts'
import {
  codeOfShape,
  DOTTED_COUNTRIES,
  nameOfPlace,
} from '../../src/api/console/client/views/map/places.ts'
import { COUNTRIES } from '../../src/geo/countries.ts'
import type { AnswerMap } from '../../src/plugin/admin-map.ts'

const SHARE = fc.record({
  answer: fc.integer({ min: 0, max: 20 }),
  ipv4: fc.double({ min: 0, max: 1, noNaN: true }),
  ipv6: fc.double({ min: 0.01, max: 1, noNaN: true }),
})

t.test('the parts of a fill add up to 1, and are at most 4', async () => {
  const shares = fc.uniqueArray(SHARE, { minLength: 1, maxLength: 9, selector: (s) => s.answer })
  fc.assert(
    fc.property(shares, (all) => {
      const parts = fillOf(all)
      const sum = parts.reduce((total, { part }) => total + part, 0)
      return parts.length <= 4 && Math.abs(sum - 1) < 1e-9 && parts.length > 0
    }),
  )
})

t.test('the world stays in sight, however it is zoomed and moved', async () => {
  const number = fc.double({ min: -2000, max: 2000, noNaN: true })
  const step = fc.oneof(
    fc.record({ x: number, y: number }),
    fc.record({ factor: fc.double({ min: 0.01, max: 100, noNaN: true }), x: number, y: number }),
  )
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      let frame = WHOLE
      for (const one of steps) {
        frame =
          'factor' in one ? zoomAt(frame, one.factor, one.x, one.y) : move(frame, one.x, one.y)
        const { scale, x, y } = frame
        if (scale < 1 || x > 0 || y > 0) return false
        if (x + WORLD_WIDTH * scale < WORLD_WIDTH - 1e-6) return false
        if (y + WORLD_HEIGHT * scale < WORLD_HEIGHT - 1e-6) return false
      }
      return true
    }),
  )
})

t.test('each country has a shape or a dot, and a name', async (t) => {
  const { default: world } = await import('world-atlas/countries-110m.json', {
    with: { type: 'json' },
  })
  const shapes = world.objects.countries.geometries.map((one) => {
    return codeOfShape(one.id, one.properties.name)
  })
  const all = [...shapes, ...DOTTED_COUNTRIES.map(({ code }) => code)]
  t.strictSame([...new Set(all)].sort(), [...COUNTRIES].sort())
  for (const code of COUNTRIES) t.not(nameOfPlace(code), code)
})

t.test('rows have the targets of their group, sorted; answers in service come first', async (t) => {
  const answer = (target: string): AnswerMap['answers'][number] => ({
    ...{ name: 'a.', targets: [target], setIdentifier: '', record: '', weight: null },
    ...{ state: 'served', detail: '' },
  })
  const map = {
    answers: ['192.0.2.3', '192.0.2.2', '192.0.2.1'].map(answer),
    groups: [{ shares: [2, 1].map((i) => ({ answer: i, ipv4: 1, ipv6: 1 })), sharesOmitted: 0 }],
    countries: [{ code: 'DE', group: 0 }],
  } as unknown as AnswerMap
  t.strictSame(rowsOf(map, map.countries)[0]!.targets, ['192.0.2.1', '192.0.2.2'])
  t.strictSame(orderOf(map), [1, 2, 0])
})

t.test('an answer that the reply leaves out has a label', async (t) => {
  t.equal(labelOf(undefined), 'an endpoint that is not listed')
})
