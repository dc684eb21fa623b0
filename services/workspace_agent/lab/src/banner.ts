/** The banner above JupyterLab: there from the first warning on. */

import { Widget } from '@lumino/widgets';

import { buttonRow } from './actions.js';
import type { Session } from './session.js';
import { bannerText, tone, warningKey } from './texts.js';

export class Banner extends Widget {
  private readonly row = document.createElement('div');
  private readonly text = document.createElement('span');
  private readonly spoken = document.createElement('span');
  private spokenFor = '';
  private buttons: HTMLElement = document.createElement('div');
  private shownFor = '';
  private closedFor = '';

  constructor(private readonly session: Session) {
    super();
    this.id = 'gpu-workspaces-banner';
    this.addClass('gw-Banner');
    this.text.className = 'gw-Banner-text';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Session');
    // Readers say each warning once, and not the countdown.
    this.spoken.className = 'gw-Banner-spoken';
    this.spoken.setAttribute('role', 'alert');
    this.row.className = 'gw-Banner-row';
    this.row.append(this.text, this.buttons, this.closer());
    this.node.append(this.row, this.spoken);
    session.changed.connect(this.render, this);
    this.hide();
  }

  /** Show what is the case now; called every second for the countdown. */
  render(): void {
    const { seen } = this.session;
    const now = Date.now();
    const words = seen && bannerText(seen, now);
    const answer = seen?.view.answer;
    if (!seen || !words || !answer || this.closedFor === warningKey(answer)) {
      this.setHidden(true);
      return;
    }
    this.node.dataset.tone = tone(seen, now);
    if (this.text.textContent !== words) {
      this.text.textContent = words;
      this.text.title = answer.lost.join('\n');
    }
    if (this.spokenFor !== warningKey(answer)) {
      this.spokenFor = warningKey(answer);
      this.spoken.textContent = words;
    }
    const key = JSON.stringify(answer.buttons);
    if (key !== this.shownFor) {
      const row = buttonRow(this.session, answer.buttons);
      this.buttons.replaceWith(row);
      this.buttons = row;
      this.shownFor = key;
    }
    this.setHidden(false);
    this.grow();
  }

  protected override onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    this.grow();
  }

  /** Ask for as much height as the words and buttons need at this width. */
  private grow(): void {
    const height = `${this.row.offsetHeight}px`;
    if (this.isVisible && this.node.style.minHeight !== height) {
      this.node.style.minHeight = height;
      this.parent?.fit();
    }
  }

  private closer(): HTMLElement {
    const close = document.createElement('button');
    close.className = 'jp-mod-styled jp-mod-minimal gw-Banner-close';
    close.textContent = '×';
    close.title = 'Hide until the next warning';
    close.setAttribute('aria-label', close.title);
    close.addEventListener('click', () => {
      const answer = this.session.seen?.view.answer;
      this.closedFor = answer ? warningKey(answer) : '';
      this.render();
    });
    return close;
  }
}
