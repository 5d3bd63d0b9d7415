import { useEffect } from 'preact/hooks'
import type { ServerStatus } from '../../../../base/telemetry/status.ts'
import { VIEWS } from '../views.ts'
import { contact } from './api.ts'
import { EndpointPatterns } from './endpoint-patterns.tsx'
import { printTime } from './format.ts'
import { Link } from './link.tsx'
import { Message } from './message.tsx'
import { OtherServer } from './other-server.tsx'
import { printable } from './printable.ts'
import { StatusContext } from './status.ts'
import { TokenForm } from './token-form.tsx'
import { useParameters } from './use-parameters.ts'
import { type Polled, usePolled } from './use-polled.ts'
import { useStore } from './use-store.ts'
import { ViewBoundary } from './view-boundary.tsx'

const ZONES_SHOWN_MAX = 3

/** The frame of all views: header, navigation, and what concerns all of them. */
export function Shell() {
  const status = usePolled<ServerStatus>('/v1/status')
  const { get } = useParameters()
  const { id, title, View } = VIEWS.find((view) => view.id === get('view')) ?? VIEWS[0]!
  useEffect(() => {
    document.title = `${title} - Sextant`
  }, [title])
  return (
    <StatusContext.Provider value={status}>
      <a class="skip" href="#view">
        Skip to the view
      </a>
      <Header status={status} />
      <nav class="views" aria-label="Views">
        <ul>
          {VIEWS.map((view) => (
            <li key={view.id}>
              <Link
                view={view.id}
                parameters={{ name: get('name'), type: get('type') }}
                isCurrent={view.id === id}
              >
                {view.title}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <main id="view" tabIndex={-1}>
        <Transport />
        <Silence />
        <TokenForm />
        <OtherServer />
        <h1>{title}</h1>
        <ViewBoundary key={`${id} ${get('server')}`}>
          <View />
        </ViewBoundary>
      </main>
      <footer>
        <a href="plain">Plain tables</a> <a href="licenses.txt">Licenses of libraries</a>
      </footer>
      <EndpointPatterns />
    </StatusContext.Provider>
  )
}

function Header({ status: { data } }: { readonly status: Polled<ServerStatus> }) {
  const zones = (data?.zones ?? []).map(({ zone }) => printable(zone))
  const more = zones.length - ZONES_SHOWN_MAX
  return (
    <header>
      <strong class="product">
        Sextant{data === undefined ? '' : printable(` ${data.version}`)}
      </strong>
      <span class="server">{window.location.host}</span>
      <span class="zones">
        {zones.slice(0, ZONES_SHOWN_MAX).join(', ')}
        {more > 0 && ` and ${more} more`}
      </span>
    </header>
  )
}

/** Says since when the server does not answer. */
function Silence() {
  const { lastMs, fault } = useStore(contact)
  const text =
    lastMs === undefined
      ? 'The server does not answer. The page tries again.'
      : `The server has not answered since ${printTime(new Date(lastMs).toISOString())}. The page shows the last state, and tries again.`
  return <Message kind="error" text={fault === '' ? '' : text} />
}

/** Browsers regard loopback, and pages with TLS, as secure. */
function Transport() {
  const text = 'This connection has no TLS: others on the network can read the page and the token.'
  return <Message kind="warning" text={window.isSecureContext ? '' : text} />
}
