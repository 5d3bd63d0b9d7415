// Pages of metrics, summed up.

/** Sum of the series of `name` whose labels all of `patterns` match. */
export function sum(page, name, ...patterns) {
  let total = 0
  for (const line of page.split('\n')) {
    if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue
    if (patterns.every((pattern) => pattern.test(line))) {
      total += Number(line.slice(line.lastIndexOf(' ') + 1))
    }
  }
  return total
}

/** '' where nobody listens. */
export async function page(port) {
  const reply = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined)
  return reply === undefined ? '' : reply.text()
}
