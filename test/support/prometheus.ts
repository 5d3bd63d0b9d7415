import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { getText } from './get-text.ts'
import { root } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

/** A panel of a dashboard: title, unit, query, legend. */
type Panel = readonly [title: string, unit: string, query: string, legend: string]

export const { DASHBOARDS, printDashboard } = (await import(
  join(root, 'deploy/observability/dashboards.mjs')
)) as {
  readonly DASHBOARDS: Readonly<Record<string, { readonly panels: readonly Panel[] }>>
  printDashboard(name: string): string
}

/** The panels of a dashboard, without those of the titles `without`. */
export function panelsOf(name: string, without: readonly string[] = []): readonly Panel[] {
  return DASHBOARDS[name]!.panels.filter(([title]) => !without.includes(title))
}

/** A running Prometheus that reads some processes, gone when the test ends. */
export class Prometheus {
  readonly #url: string

  private constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}`
  }

  /** @param targets addresses of metrics, by job */
  static async start(t: Test, targets: Readonly<Record<string, string>>): Promise<Prometheus> {
    const directory = temporaryDirectory(t)
    const port = await freePort()
    const scrape_configs = Object.entries(targets).map(([job_name, target]) => ({
      job_name,
      static_configs: [{ targets: [target] }],
    }))
    const config = join(directory, 'prometheus.yml')
    // JSON is YAML.
    writeFileSync(config, JSON.stringify({ global: { scrape_interval: '500ms' }, scrape_configs }))
    const child = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(directory, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--enable-feature=exemplar-storage',
      ],
      { stdio: 'ignore' },
    )
    t.teardown(() => child.kill('SIGKILL'))
    const prometheus = new Prometheus(port)
    await until(() => prometheus.#isReady(), 'Prometheus')
    return prometheus
  }

  async #isReady(): Promise<boolean> {
    try {
      return (await getText(`${this.#url}/-/ready`)).status === 200
    } catch {
      return false
    }
  }

  /** Waits until each panel has data; rejects with the titles of those that stay empty. */
  async fills(panels: readonly Panel[]): Promise<void> {
    let empty = panels
    const areFull = async (): Promise<boolean> => {
      const have = await Promise.all(empty.map(([, , query]) => this.#hasData(query)))
      empty = empty.filter((_, i) => !have[i])
      return empty.length === 0
    }
    await until(areFull, 'data in each panel').catch((error: Error) => {
      throw new Error(`${error.message}: ${empty.map(([title]) => title).join(', ')}`)
    })
  }

  /** Labels and value of each example that Prometheus has for a query. */
  async exemplars(query: string): Promise<{ labels: Record<string, string>; value: string }[]> {
    const times = `start=${Date.now() / 1000 - 600}&end=${Date.now() / 1000 + 600}`
    const { text } = await getText(
      `${this.#url}/api/v1/query_exemplars?query=${encodeURIComponent(query)}&${times}`,
    )
    type Series = { exemplars: { labels: Record<string, string>; value: string }[] }
    return (JSON.parse(text) as { data: Series[] }).data.flatMap(({ exemplars }) => exemplars)
  }

  async #hasData(query: string): Promise<boolean> {
    const text = query.replaceAll(/\$(job|instance)/g, '.*').replaceAll('$__rate_interval', '1m')
    const { status, text: body } = await getText(
      `${this.#url}/api/v1/query?query=${encodeURIComponent(text)}`,
    )
    if (status !== 200) throw new Error(`${query}: ${body}`)
    return (JSON.parse(body) as { data: { result: unknown[] } }).data.result.length > 0
  }
}
