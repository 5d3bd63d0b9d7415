import { Component, type ComponentChildren } from 'preact'
import { Message } from './message.tsx'

interface ViewBoundaryProps {
  readonly children: ComponentChildren
}

interface Fault {
  /** '' = the view can be shown. */
  readonly text: string
}

/** Shows an error in place of a view that can't show what the server sent. The rest of the page still works. */
export class ViewBoundary extends Component<ViewBoundaryProps, Fault> {
  override state: Fault = { text: '' }

  static override getDerivedStateFromError(error: unknown): Fault {
    return { text: `The view cannot show what the server sent: ${String(error)}` }
  }

  override render({ children }: ViewBoundaryProps, { text }: Fault): ComponentChildren {
    return text === '' ? children : <Message kind="error" text={text} />
  }
}
