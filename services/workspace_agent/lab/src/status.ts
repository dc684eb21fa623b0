/** The item in the status bar, and what it opens: the reason, the evidence and the buttons. */

import { type Popup, showPopup } from '@jupyterlab/statusbar';
import { Widget } from '@lumino/widgets';

import { buttonRow } from './actions.js';
import type { Answer, View } from './protocol.js';
import type { Session } from './session.js';
import { duration, gpuLines, statusText, tone } from './texts.js';

export class StatusItem extends Widget {
  private readonly button = document.createElement('button');
  private popup: Popup | null = null;

  constructor(private readonly session: Session) {
    super();
    this.addClass('gw-Status');
    this.addClass('jp-mod-highlighted');
    this.button.className = 'gw-Status-button jp-StatusBar-TextItem';
    this.button.title = 'What happens to this server, and why';
    this.button.setAttribute('aria-haspopup', 'dialog');
    this.button.addEventListener('click', () => this.toggle());
    this.node.append(this.button);
    session.changed.connect(this.render, this);
    this.render();
  }

  /** Show what is the case now; called every second for the countdown. */
  render(): void {
    const { seen } = this.session;
    const now = Date.now();
    const text = seen ? statusText(seen, now) : '';
    if (this.button.textContent !== text) {
      this.button.textContent = text;
    }
    this.node.dataset.tone = seen ? tone(seen, now) : 'quiet';
    this.setHidden(text === '');
  }

  private toggle(): void {
    if (this.popup && !this.popup.isDisposed) {
      this.popup.dispose();
      return;
    }
    const { seen } = this.session;
    if (seen) {
      const body = details(this.session, seen.view, () => this.popup?.dispose());
      this.popup = showPopup({ body, anchor: this, align: 'right', hasDynamicSize: false });
    }
  }
}

function details(session: Session, view: View, done: () => void): Widget {
  const widget = new Widget();
  widget.addClass('gw-Details');
  widget.node.setAttribute('role', 'dialog');
  widget.node.setAttribute('aria-label', 'This server');
  const { answer } = view;
  const gpus = gpuLines(view.gpus);
  widget.node.append(
    ...(answer ? [line('p', answer.text, 'gw-Details-text')] : []),
    ...(answer?.observeOnly ? [line('p', 'Nothing is stopped yet: this is only what would happen.')] : []),
    ...(view.problem ? [line('p', `${view.problem}. What is shown may be out of date.`)] : []),
    ...gpus.map(text => line('p', text)),
    ...(answer ? evidence(answer) : []),
    ...(answer?.lost.length ? [line('h4', 'A stop loses'), list(answer.lost)] : []),
    ...(answer?.buttons.length ? [buttonRow(session, answer.buttons, done)] : []),
  );
  return widget;
}

function evidence(answer: Answer): HTMLElement[] {
  const table = document.createElement('table');
  for (const { text, value, ageSeconds } of answer.evidence) {
    const row = table.insertRow();
    const mark = row.insertCell();
    mark.textContent = value;
    mark.dataset.value = value;
    row.insertCell().textContent = text;
    row.insertCell().textContent = ageSeconds === null ? '' : `${duration(ageSeconds)} ago`;
  }
  return answer.evidence.length ? [line('h4', 'Signals'), table] : [];
}

function line(tag: 'p' | 'h4' | 'li', text: string, className = ''): HTMLElement {
  const node = document.createElement(tag);
  node.textContent = text;
  node.className = className;
  return node;
}

function list(texts: readonly string[]): HTMLElement {
  const node = document.createElement('ul');
  node.append(...texts.map(text => line('li', text)));
  return node;
}
