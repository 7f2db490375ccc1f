import { Component, type ComponentChild, type ComponentType, type FunctionComponent } from 'preact'

/** A component that is drawn again only when a property is another one. */
export function memo<P extends object>(Draw: FunctionComponent<P>): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const old = this.props as Record<string, unknown>
      const entries = Object.entries(next)
      return entries.length !== Object.keys(old).length || entries.some(([name, value]) => old[name] !== value)
    }

    override render(): ComponentChild {
      return <Draw {...(this.props as P)} />
    }
  }
}
