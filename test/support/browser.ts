import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { freePort, type RunningServer, startServer } from './server.ts'

/** Ample, for a machine on which other tests run too. */
const WAIT_MS_MAX = 60_000
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const AXE_RUN = `axe.run(document, { preload: false }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html + ' ' + node.failureSummary)))`

/** A name of this machine that browsers do not regard as secure without TLS. */
export const PLAIN_HOST = 'plain.example'

/** A page in a browser of its own profile. */
export interface OpenPage {
  readonly page: Page
  /** What axe-core finds wrong in what the page shows now. */
  violations(): Promise<readonly string[]>
}

interface PageOptions extends BrowserContextOptions {
  /** Errors of the browser's console that the test causes, such as those of a server that stops. */
  readonly expected?: RegExp
}

/**
 * Starts Chromium, which ends with `t`. Returns a function that opens an address; the test fails if the page logs an
 * error, breaks its security policy, or sends a request to another origin.
 */
export async function startBrowser(
  t: Test,
): Promise<(t: Test, url: string, options?: PageOptions) => Promise<OpenPage>> {
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], {
    encoding: 'utf8',
  }).trim()
  // The sandbox of Chromium refuses root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  args.push(`--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`)
  const browser = await chromium.launch({ executablePath, args })
  t.teardown(() => browser.close())
  return (t, url, options = {}) => openPage(t, browser, url, options)
}

async function openPage(
  t: Test,
  browser: Browser,
  url: string,
  { expected, ...options }: PageOptions,
): Promise<OpenPage> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(WAIT_MS_MAX)
  const page = await context.newPage()
  const faults: string[] = []
  const note = (fault: string): void => {
    if (expected?.test(fault) !== true) faults.push(fault)
  }
  page.on('console', (message) => {
    if (message.type() === 'error') note(`${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', (error) => note(String(error)))
  context.on('request', (request) => {
    const asked = new URL(request.url())
    const isOwn = asked.origin === new URL(url).origin || asked.protocol === 'data:'
    if (!isOwn) note(`request to ${asked.href}`)
  })
  t.teardown(async () => {
    await context.close()
    // An assertion would be too late here.
    if (faults.length > 0) throw new Error(`the page had faults:\n${faults.join('\n')}`)
  })
  await page.goto(url)
  return { page, violations: () => findViolations(page) }
}

/** The protocol of the developer tools runs axe-core past the security policy of the page. */
async function findViolations(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page)
  const evaluate = async (expression: string): Promise<unknown> => {
    const options = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', options)
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return result.value
  }
  await evaluate(`${readFileSync(AXE, 'utf8')}; 0`)
  const found = await evaluate(AXE_RUN)
  await session.detach()
  return found as readonly string[]
}

interface ConsoleOptions {
  /** Path to content, beside the Corefile; DNSRecords in `records/`. */
  readonly files?: Readonly<Record<string, string>>
  /** Properties of the directive `admin`, beside `console on`. */
  readonly admin?: string
  /** More lines of the block. */
  readonly block?: string
  /** Properties of the directive `kuadrant`, beside `manifests records`. */
  readonly kuadrant?: string
}

interface RunningConsole extends RunningServer {
  readonly adminPort: number
  /** Of the console, with a final slash. */
  readonly url: string
}

/** Starts a server of k.example.com, whose clients are located by their subnet, with the web console. */
export async function startConsole(
  t: Test,
  { files = {}, admin = '', block = '', kuadrant = '' }: ConsoleOptions = {},
): Promise<RunningConsole> {
  const adminPort = await freePort()
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
    }
    metadata
    kuadrant {
        manifests records
        ${kuadrant}
    }
    admin 127.0.0.1:${adminPort} {
        console on
        ${admin}
    }
    ${block}
}
`
  const server = await startServer(t, {
    corefile,
    files: { 'records/none.txt': '', ...files },
  })
  return { ...server, adminPort, url: `http://127.0.0.1:${adminPort}/console/` }
}
