import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/** What a kubeconfig says where reading it is all there is to do. */
export interface PlainKubeconfig {
  /** What the kubeconfig calls the cluster. */
  readonly cluster: string;
  /** https */
  readonly server: string;
  /** PEM. */
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | undefined;
  readonly key?: Buffer | undefined;
  readonly token?: string | undefined;
}

const base64 = z.base64().transform((text) => Buffer.from(text, 'base64'));
const Name = z.object({ name: z.string() });
const Kubeconfig = z.object({
  'current-context': z.string().optional(),
  contexts: z.array(Name.extend({ context: z.object({ cluster: z.string(), user: z.string() }) })),
  clusters: z.array(Name.extend({ cluster: z.unknown() })),
  users: z.array(Name.extend({ user: z.unknown() })),
});
const Users = z.object({ users: z.array(Name.extend({ user: z.unknown() })).nullish() });
const Cluster = z.strictObject({
  server: z.url({ protocol: /^https$/ }),
  'certificate-authority-data': base64.optional(),
});
const User = z.strictObject({
  token: z.string().optional(),
  'client-certificate-data': base64.optional(),
  'client-key-data': base64.optional(),
});

/**
 * Reads a kubeconfig whose credentials are in it: a token or a client certificate. client-node reads every other one,
 * and costs 800 modules and most of the time that a command takes to start.
 *
 * @param file undefined: the one that kubectl uses.
 * @param context undefined: the current one.
 * @returns undefined for everything that needs more, such as an exec plugin, OIDC, a proxy or several files, and for
 *   what can't be read: then client-node's error says why.
 */
export async function readPlainKubeconfig(
  file: string | undefined,
  context: string | undefined,
): Promise<PlainKubeconfig | undefined> {
  try {
    const text = await readFile(file ?? defaultFile(), 'utf8');
    return plainKubeconfig(parse(text), context);
  } catch {
    return undefined;
  }
}

/**
 * Reads a kubeconfig that came with an object, such as a Secret of Cluster API. Programs that it names are not run and
 * files that it names are not read: its author would use the rights of the process that reads it.
 *
 * @throws Error that says what of it can't be used, without its contents.
 */
export function embeddedKubeconfig(text: string): PlainKubeconfig {
  try {
    return plainKubeconfig(parse(text), undefined);
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : NOT_YAML;
    throw new Error(
      `the kubeconfig can't be used: ${why.split('\n')[0]}; expected one cluster with an https server and a user with a token or a client certificate, all in the kubeconfig itself`,
    );
  }
}

/** YAML's own error shows the lines around it, which may have a token. */
const NOT_YAML = 'it is not YAML of a kubeconfig with exactly one current context';

/** A list of several files is no file's name, and so can't be read. */
function defaultFile(): string {
  return process.env['KUBECONFIG'] || path.join(process.env['HOME'] ?? '/', '.kube/config');
}

function plainKubeconfig(object: unknown, name: string | undefined): PlainKubeconfig {
  const config = Kubeconfig.parse(object);
  const context = onlyOne(config.contexts, name ?? config['current-context']).context;
  const cluster = Cluster.parse(onlyOne(config.clusters, context.cluster).cluster);
  const { token, ...user } = User.parse(onlyOne(config.users, context.user).user);
  return {
    cluster: context.cluster,
    // As client-node does: a path is added to it.
    server: cluster.server.replace(/\/$/, ''),
    ca: cluster['certificate-authority-data'],
    cert: user['client-certificate-data'],
    key: user['client-key-data'],
    token,
  };
}

function onlyOne<T extends { readonly name: string }>(all: readonly T[], name: string | undefined): T {
  const [named, ...others] = all.filter((each) => each.name === name);
  if (named === undefined || others.length > 0) throw new Error(`not exactly one is named ${name}`);
  return named;
}

/** What a kubeconfig says of a user that client-node doesn't take from it. */
export interface UserExtras {
  /** An absolute path. */
  readonly tokenFile?: string;
  readonly groups: readonly string[];
}

const Extras = z.object({ tokenFile: z.string().optional(), 'as-groups': z.array(z.string()).nullish() });

/**
 * @param file undefined: those that kubectl uses, of which the first one that has the user counts.
 * @throws Error when a file is no kubeconfig.
 */
export async function readUserExtras(file: string | undefined, user: string): Promise<UserExtras> {
  for (const each of file === undefined ? defaultFile().split(path.delimiter) : [file]) {
    // kubectl, too, passes over those that aren't there.
    const text = await readFile(each, 'utf8').catch(() => '');
    const { users } = Users.parse(parse(text) ?? {});
    const found = users?.find(({ name }) => name === user);
    if (found === undefined) continue;
    const { tokenFile, 'as-groups': groups } = Extras.parse(found.user ?? {});
    return {
      // Of the kubeconfig's directory, as the paths of certificates are.
      ...(tokenFile && { tokenFile: path.resolve(path.dirname(each), tokenFile) }),
      groups: groups ?? [],
    };
  }
  return { groups: [] };
}
