import { checkReference } from './check-reference.ts';
import type { IgnitionConfig, IgnitionSection, Passwd } from './config.ts';
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
 * @param minor the version of spec 3 that the config was written in; its translation to 3.5 is checked for what it did
 *   not have.
 */
export function validateConfig(
  config: IgnitionConfig,
  contents: ContentsReader,
  report: Report,
  minor = LATEST_MINOR,
): void {
  checkIgnitionSection(config.ignition, minor, report);
  checkPasswd(config.passwd ?? {}, report);
  checkUnits(config.systemd?.units ?? [], report);
  const storage = config.storage ?? {};
  checkPathEntries(storage, unitFilePaths(config.systemd?.units ?? []), contents, report);
  checkEnablement(config.systemd?.units ?? [], storage, report);
  checkDisks(storage, minor, report);
  const { shouldExist = [], shouldNotExist = [] } = config.kernelArguments ?? {};
  report.duplicates([
    ['$.kernelArguments.shouldExist', shouldExist],
    ['$.kernelArguments.shouldNotExist', shouldNotExist],
  ]);
}

/** Rendered configs are of 3.5. */
const LATEST_MINOR = 5;

function checkIgnitionSection(ignition: IgnitionSection, minor: number, report: Report): void {
  const { merge = [], replace } = ignition.config ?? {};
  const authorities = ignition.security?.tls?.certificateAuthorities ?? [];
  for (const [index, resource] of merge.entries()) {
    checkReference(resource, `$.ignition.config.merge[${index}]`, { minor, required: true, report });
  }
  if (replace !== undefined) {
    checkReference(replace, '$.ignition.config.replace', { minor, required: false, report });
  }
  for (const [index, resource] of authorities.entries()) {
    checkReference(resource, `$.ignition.security.tls.certificateAuthorities[${index}]`, {
      minor,
      required: true,
      report,
    });
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
