import { Component, type ComponentChildren } from 'preact'

interface BoundaryProps {
  /** What is drawn; once it is another one it is tried again. */
  of: unknown
  instead: ComponentChildren
  children: ComponentChildren
}

/** Shows something else in place of what cannot be drawn: what an agent says is input, and must not end the whole page. */
export class Boundary extends Component<BoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false }

  static override getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true }
  }

  override componentDidUpdate(before: Readonly<BoundaryProps>): void {
    if (this.state.hasFailed && before.of !== this.props.of) this.setState({ hasFailed: false })
  }

  override render(): ComponentChildren {
    return this.state.hasFailed ? this.props.instead : this.props.children
  }
}
