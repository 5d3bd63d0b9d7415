import t from 'tap'
import {
  type EndpointList,
  EndpointLists,
  type EndpointPage,
  type ServedEndpoint,
} from '../../../src/base/telemetry/endpoint-lists.ts'

const QUERY = { offset: 0, limit: 2 }

/** A list of `size` records of one endpoint each, or of as many as `each` says. The last name is the first one. */
function listOf(size: number, each = 1): EndpointList {
  return {
    place: 'block',
    size,
    *walk(_query, _history, reads, visit) {
      for (let i = size; i > 0; i--) {
        if (reads.left-- <= 0) return
        yield
        for (let j = 0; j < each; j++) visit(endpoint(`${i + 1e6}.example.org.`))
      }
    },
  }
}

function endpoint(name: string): ServedEndpoint {
  const facts = { zone: 'example.org.', name, type: 'A', setIdentifier: '' }
  const rest = { site: '', targets: [], record: '', detail: '', weightPercent: 100 }
  return { ...facts, state: 'up', timeline: undefined, describe: () => ({ ...facts, ...rest }) }
}

/** Returns a page, and the number of pauses on the way to it. */
function select(list: EndpointList): { page: EndpointPage; pauses: number } {
  const lists = new EndpointLists()
  lists.add(list)
  const work = lists.select(QUERY, undefined, 0)
  for (let pauses = 0; ; pauses++) {
    const step = work.next()
    if (step.done === true) return { page: step.value, pauses }
  }
}

t.test('a long list is sorted with pauses', async (t) => {
  const { page, pauses } = select(listOf(20_000))
  t.strictSame(
    page.endpoints.map(({ name }) => name),
    ['1000001.example.org.', '1000002.example.org.'],
  )
  t.match(page, { total: 20_000, states: { up: 20_000 }, recordsOmitted: 0 })
  t.ok(pauses > 20_000 + 10, `${pauses} pauses`)
})

t.test('the endpoints that are held have a limit, whatever records have', async (t) => {
  const { page } = select(listOf(500, 1000))
  t.match(page, { total: 200_000, recordsOmitted: 300 })
})
