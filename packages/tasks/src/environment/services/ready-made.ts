import type { BackgroundCommand, EnvironmentService } from '@corral/protocol'

/** How long a service may take to stop answering with "starting up". */
const postgresPort = 5432

/**
 * In: VERSION (empty for the newest) POSTGRES_USER POSTGRES_DB POSTGRES_PASSWORD PORT DATA. The database is made before the
 * server listens, so that every client that connects finds it. What is kept for a task alone need not reach the disk.
 */
const postgresScript = `set -eu
bin=
for each in /usr/lib/postgresql/\${VERSION:-[0-9]*}/bin; do if [ -x "$each/initdb" ]; then bin=$each; fi; done
if [ -z "$bin" ] && [ -z "$VERSION" ] && command -v initdb > /dev/null; then bin=$(dirname -- "$(readlink -f -- "$(command -v initdb)")"); fi
if [ -z "$bin" ]; then echo "this node has no PostgreSQL\${VERSION:+ $VERSION}: install it there, or start the service with \\"run\\""; exit 1; fi
mkdir -p -- "\${DATA%/*}"
echo "$bin" > "$DATA.bin"
if [ ! -f "$DATA/ready" ]; then
  rm -rf -- "$DATA"
  printf '%s\\n' "$POSTGRES_PASSWORD" > "$DATA.password"
  "$bin/initdb" -D "$DATA" -U "$POSTGRES_USER" -E UTF8 --auth=trust --pwfile="$DATA.password" --no-sync > /dev/null
  rm -f -- "$DATA.password"
  if [ "$POSTGRES_DB" != postgres ]; then
    printf 'CREATE DATABASE "%s";\\n' "$(printf %s "$POSTGRES_DB" | sed 's/"/""/g')" | "$bin/postgres" --single -D "$DATA" postgres > /dev/null
  fi
  : > "$DATA/ready"
fi
# Of the server that was ended with the sandbox it ran in; here its number may be another process's.
rm -f -- "$DATA/postmaster.pid"
exec "$bin/postgres" -D "$DATA" -p "$PORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp -c fsync=off -c logging_collector=off
`

const postgresReady = '"$(cat "$DATA.bin")/pg_isready" -q -h 127.0.0.1 -p "$PORT"'

/** A command and what says that it is ready. */
export interface RunnableService extends BackgroundCommand {
  /** Asked for beside the port; a command of the shell. */
  isReady?: string
}

type Service = Omit<EnvironmentService, 'env'> & { env?: Record<string, string> | undefined }

/**
 * The service as a command. `home` is a directory that is kept with what set-up leaves: it may have filled a database. Pure.
 */
export function runnableService(service: Service, home: string): RunnableService {
  const { name, use, run, timeoutSeconds, env = {} } = service
  if (use === undefined)
    return { name, run: run ?? '', ...(service.port ? { port: service.port } : {}), timeoutSeconds, env }
  const port = service.port ?? postgresPort
  return {
    name,
    run: postgresScript,
    isReady: postgresReady,
    port,
    timeoutSeconds,
    env: {
      ...postgresSettings(service),
      VERSION: /-(\d+)$/.exec(use)?.[1] ?? '',
      PORT: String(port),
      DATA: `${home}/${name}`,
    },
  }
}

function postgresSettings({ env = {} }: Pick<Service, 'env'>): Record<string, string> {
  const user = env.POSTGRES_USER ?? 'postgres'
  return {
    ...env,
    POSTGRES_USER: user,
    POSTGRES_DB: env.POSTGRES_DB ?? user,
    POSTGRES_PASSWORD: env.POSTGRES_PASSWORD ?? 'postgres',
  }
}

/** How set-up, agent and checks find ready-made services: by the variables their clients read. Pure. */
export function serviceVariables(services: readonly Service[]): Record<string, string> {
  const postgres = services.find(({ use }) => use !== undefined)
  if (!postgres) return {}
  const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD } = postgresSettings(postgres)
  return {
    PGHOST: '127.0.0.1',
    PGPORT: String(postgres.port ?? postgresPort),
    PGUSER: POSTGRES_USER ?? '',
    PGDATABASE: POSTGRES_DB ?? '',
    PGPASSWORD: POSTGRES_PASSWORD ?? '',
  }
}
