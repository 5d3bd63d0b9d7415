import { Link } from './link.tsx'
import { Message } from './message.tsx'
import { printable } from './printable.ts'
import { useStatus } from './status.ts'
import { useParameters } from './use-parameters.ts'

/** Says which other server the page shows. */
export function OtherServer() {
  const { get } = useParameters()
  const { error } = useStatus()
  const server = get('server')
  if (server === '') return null
  return (
    <>
      <p class="other-server">
        This page shows the server <b>{printable(server)}</b>, which can only be read here.{' '}
        <Link view={get('view')} parameters={{ server: '', name: get('name'), type: get('type') }}>
          Show {window.location.host}
        </Link>
      </p>
      <Message kind="error" text={error} />
    </>
  )
}
