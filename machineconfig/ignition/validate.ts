import type { IgnitionConfig, IgnitionSection, Passwd, Resource } from './config.ts';
import type { ContentsReader } from './contents.ts';
import type { Report } from './report.ts';
import { checkDisks } from './validate-disks.ts';
import { checkEnablement } from './validate-enablement.ts';
import { checkPathEntries } from './validate-paths.ts';
import { checkUnits, unitFilePaths } from './validate-units.ts';

/**
 * Checks an Ignition 3.5 config as Ignition's validator does (the Validate methods of its types and its search for
 * duplicates), and beyond it what would only fail on a node: remote or undecodable contents, names that would leave
 * their directory, verification hashes that do not match.
 *
 * @param contents checks contents, and how far they unfold
 * @param report gets every problem and warning; paths begin at the config, `$`
 */
export function validateConfig(config: IgnitionConfig, contents: ContentsReader, report: Report): void {
  checkIgnitionSection(config.ignition, report);
  checkPasswd(config.passwd ?? {}, report);
  checkUnits(config.systemd?.units ?? [], report);
  const storage = config.storage ?? {};
  checkPathEntries(storage, unitFilePaths(config.systemd?.units ?? []), contents, report);
  checkEnablement(config.systemd?.units ?? [], storage, report);
  checkDisks(storage, report);
  const { shouldExist = [], shouldNotExist = [] } = config.kernelArguments ?? {};
  report.duplicates([
    ['$.kernelArguments.shouldExist', shouldExist],
    ['$.kernelArguments.shouldNotExist', shouldNotExist],
  ]);
}

function checkIgnitionSection(ignition: IgnitionSection, report: Report): void {
  const { merge = [], replace } = ignition.config ?? {};
  const authorities = ignition.security?.tls?.certificateAuthorities ?? [];
  for (const [index, resource] of merge.entries()) {
    checkReference(resource, `$.ignition.config.merge[${index}]`, report);
  }
  if (replace?.source !== undefined) {
    checkReference(replace, '$.ignition.config.replace', report);
  }
  for (const [index, resource] of authorities.entries()) {
    checkReference(resource, `$.ignition.security.tls.certificateAuthorities[${index}]`, report);
  }
  report.duplicates([['$.ignition.config.merge', merge.map((resource) => resource.source ?? '')]]);
  report.duplicates([
    ['$.ignition.security.tls.certificateAuthorities', authorities.map((resource) => resource.source ?? '')],
  ]);
  for (const scheme of ['httpProxy', 'httpsProxy'] as const) {
    const url = ignition.proxy?.[scheme];
    if (url !== undefined && !/^https?:/i.test(url)) {
      report.problem(`$.ignition.proxy.${scheme}`, 'is not an http or https URL', 'http://… or https://…');
    }
  }
}

/** Configs and certificates that Ignition itself fetches at first boot; nothing here reads them. */
function checkReference(resource: Resource, path: string, report: Report): void {
  if (!/^(https?|tftp|s3|gs|arn|data):/i.test(resource.source ?? '')) {
    report.problem(`${path}.source`, 'is missing or has an unknown scheme', 'a URL');
  }
}

/**
 * A user's name becomes part of paths on the node. The pattern is useradd(8)'s, with the upper case and dots that
 * systemd's relaxed mode allows.
 */
const ACCOUNT_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?$/;

function checkPasswd(passwd: Passwd, report: Report): void {
  for (const kind of ['users', 'groups'] as const) {
    const accounts = passwd[kind] ?? [];
    for (const [index, { name }] of accounts.entries()) {
      if (name !== '' && !ACCOUNT_NAME.test(name)) {
        report.problem(
          `$.passwd.${kind}[${index}].name`,
          'is not a valid name',
          'letters, digits, _, - and ., at most 32, beginning with a letter or _',
        );
      }
    }
    report.duplicates([[`$.passwd.${kind}`, accounts.map((account) => account.name)]]);
  }
  for (const [index, user] of (passwd.users ?? []).entries()) {
    const path = `$.passwd.users[${index}]`;
    report.duplicates([[`${path}.sshAuthorizedKeys`, user.sshAuthorizedKeys ?? []]]);
    report.duplicates([[`${path}.groups`, user.groups ?? []]]);
  }
}
