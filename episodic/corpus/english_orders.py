"""English issues about money and parcels. One sentence per line; the desk joins them into turns."""

from __future__ import annotations

from typing import Final

from episodic.corpus.kinds import (
    ADDRESS_CHANGE,
    DOUBLE_CHARGE,
    INVOICE_VAT,
    LATE_DELIVERY,
    MISSING_PARCEL,
    PAYMENT_DECLINED,
    REFUND_STATUS,
    SUBSCRIPTION_CANCEL,
    WRONG_ITEM,
)
from episodic.corpus.speech import Issue

__all__ = ["ORDER_ISSUES"]

ORDER_ISSUES: Final = (
    Issue(
        kind=DOUBLE_CHARGE,
        opening=(
            "I was charged twice for order {order}: {amount} left my account on {day} and again an hour later.",
            "My bank statement shows two identical debits of {amount} from you, both for the {product}.",
            "Why is there a duplicate payment of {amount} on the card ending {card}? I only placed one order.",
            "You billed me two times for {order}, the checkout hung with {error} and I pressed pay again.",
            "The shop showed {error} when I paid for the {product}, and now the money is gone twice.",
        ),
        detail=(
            "The order number is {order}, paid with the card ending {card}, and the mail address is {email}.",
            "It is {order}; the first debit is dated {date}, the second carries the reference {request}.",
            "I can send a screenshot of the statement, both lines read {amount} and the same day, {day}.",
        ),
        finding=(
            "I can see two captured payments of {amount} for {order}, the second one without an order behind it.",
            "The acquirer reported {error} on the first attempt, so the shop tried again and both went through.",
            "One of the two debits is only a reservation on the card ending {card} and will lapse by {eta}.",
        ),
        solved=(
            "The duplicate {amount} is on its way back to the card ending {card}, you should see it by {eta}.",
            "I have voided the second payment for {order}; the reference for your bank is {request}.",
        ),
        unsolved=(
            "I am not able to reverse a settled payment from here, so the accounting team has to release {amount}.",
            "The refund was refused with {error}; {colleague} from the payments team needs to look at {order}.",
        ),
    ),
    Issue(
        kind=LATE_DELIVERY,
        opening=(
            "My parcel {tracking} was promised for {day} and the tracking page has not moved for {days} days.",
            "Where is order {order}? {carrier} says the {product} is still at the depot near {city}.",
            "The {product} I ordered on {date} should have arrived by now, and nobody can tell me where it is.",
            "I stayed at home all {weekday} for the courier, no one rang, and the status only says in transit.",
            "Delivery of {order} has been postponed three times already, the last estimate was {day}.",
        ),
        detail=(
            "The tracking number is {tracking}, shipped with {carrier} to {street}, {postcode} {city}.",
            "Order {order}, placed on {date}, one {product} in {colour}, express shipping paid extra.",
            "The last scan says {warehouse}, which is nowhere near {city} as far as I can see.",
        ),
        finding=(
            "The parcel was missorted at {warehouse} on {day} and is now on the line haul towards {city}.",
            "{carrier} holds {tracking} because the house number was missing on the label, {street} is complete.",
            "The last scan of {tracking} is {days} days old, which is beyond what {carrier} commits to.",
        ),
        solved=(
            "{carrier} has confirmed a new attempt for {eta}, and the express fee of {part} is refunded.",
            "I have opened an inquiry with {carrier} and it was found: the courier brings {tracking} on {eta}.",
        ),
        unsolved=(
            "{carrier} does not answer our inquiry yet, so all that I can do is wait for their reply until {eta}.",
            "I cannot send a second {thing} before the inquiry closes, although I understand that this is annoying.",
        ),
    ),
    Issue(
        kind=REFUND_STATUS,
        opening=(
            "I returned the {product} on {day} and the refund of {amount} has still not arrived.",
            "Your mail said the money for {order} would be back within {days} days, but my balance is unchanged.",
            "The return for {order} was received according to {carrier}, when do I get my {amount} back?",
            "Only {part} came back for the {product} although I paid {amount}, somebody deducted the difference.",
        ),
        detail=(
            "The parcel with the {thing} went out with {carrier}, number {tracking}, and was signed for on {date}.",
            "I paid by card ending {card}; that card has been replaced in the meantime, if this matters.",
            "The refund letter mentions {request} and the amount {part}, nothing more than that.",
        ),
        finding=(
            "The warehouse in {warehouse} registered the {thing} on {day}, and the inspection took {days} days.",
            "The refund of {amount} was sent to the old card ending {card} and bounced with {error}.",
            "A restocking fee was deducted by mistake, you are owed the full {amount} for {order}.",
        ),
        solved=(
            "I have issued the missing amount today under {request}, it should be booked by {eta}.",
            "The transfer of {amount} is approved and leaves tonight, with {order} as its reference.",
        ),
        unsolved=(
            "The inspection of the {thing} is not finished, and before that the system will not let me pay out.",
            "As the card ending {card} is closed, accounting has to ask you for bank details by letter.",
        ),
    ),
    Issue(
        kind=SUBSCRIPTION_CANCEL,
        opening=(
            "Please cancel my {plan} subscription, the button on the account page only returns {error}.",
            "I ended the {plan} plan last month and was still billed {amount} on {day}.",
            "The trial of {plan} turned into a paid plan without a reminder, and {amount} was taken from my card.",
            "I want to move from {plan} to the free tier, the renewal on {date} came as a surprise.",
        ),
        detail=(
            "The account is {email}, the plan is {plan}, and the charge shows up as {request} on my card.",
            "I clicked on cancel on {day}, there was a survey, and after that the page just went blank.",
            "We are three people on the plan, only I am leaving, the other seats should stay.",
        ),
        finding=(
            "Your {plan} plan renews on {eta} at {amount}, and the cancellation from {day} was never confirmed.",
            "The survey page failed with {error}, so your cancellation did not reach the billing system.",
            "There are two subscriptions on {email}: the old one is cancelled, the newer one is still active.",
        ),
        solved=(
            "The {plan} plan is cancelled as of today, you keep access until {eta} and pay nothing more.",
            "I have reversed the renewal of {amount} and sent the confirmation to {email}.",
        ),
        unsolved=(
            "The plan was bought through an app store, so the cancellation has to be made there, not with us.",
            "The notice period of {plan} runs until {eta}, and I have no means to shorten it from here.",
        ),
    ),
    Issue(
        kind=MISSING_PARCEL,
        opening=(
            "The tracking says that {tracking} was delivered on {day}, but there is no parcel anywhere.",
            "{carrier} claims that a neighbour signed for {order}, I asked the whole house and nobody has it.",
            "My {product} was left outside the door according to the photo, and that is not even my door.",
            "The box from {order} arrived open and empty, only the padding and the packing slip were inside.",
        ),
        detail=(
            "The address is {street}, {postcode} {city}, second floor, the name {name} is on the bell.",
            "The photo of the courier shows a green door and a bicycle, we have neither at {street}.",
            "The notification for {tracking} came in at noon on {day}, I was at work until the evening.",
        ),
        finding=(
            "The position of the delivery scan is two streets away from {street}, so this looks like a misdelivery.",
            "The weight of {tracking} dropped between {warehouse} and {city}, which points to a theft on the way.",
            "The signature for {order} is not legible, and the courier cannot recall the address any more.",
        ),
        solved=(
            "A replacement {product} leaves today as {order2}, free of charge and with signature on delivery.",
            "The courier collected the parcel from the wrong door and brings it to {street} on {eta}.",
        ),
        unsolved=(
            "Without a signed declaration that it was not received I am not allowed to ship the {thing} again.",
            "{carrier} insists on the delivery, so our claims team takes over, and that may take {days} days.",
        ),
    ),
    Issue(
        kind=INVOICE_VAT,
        opening=(
            "The invoice {invoice} is missing our VAT number {vat}, our accountant cannot book it like that.",
            "I need the invoice for {order} made out to the company instead of to me privately.",
            "You charged VAT on {invoice} although we are a business in another country with the id {vat}.",
            "The total on {invoice} is {amount}, the confirmation for {order} says {part}, which one is right?",
        ),
        detail=(
            "The company sits at {street}, {postcode} {city}, VAT id {vat}, attention of {name}.",
            "Please put the purchase order {request} on it as well, otherwise it will be sent back again.",
            "The quarter closes on {day}, so it would help to have the corrected document before that.",
        ),
        finding=(
            "The invoice {invoice} was issued to a private address because the VAT field was empty at checkout.",
            "The number {vat} is valid in the public register, so the reverse charge applies to {order}.",
            "The difference between the two totals is the shipping, which was invoiced on its own line.",
        ),
        solved=(
            "A corrected invoice {invoice} with {vat} on it has just been mailed to {email} as a document.",
            "I have credited the tax and issued a new invoice, the difference of {part} goes back to the card.",
        ),
        unsolved=(
            "The fiscal period is closed, so only the bookkeeping team may still change {invoice}.",
            "The register does not confirm {vat} at the moment, and without it I cannot remove the tax.",
        ),
    ),
    Issue(
        kind=WRONG_ITEM,
        opening=(
            "I ordered the {product} in {colour} and received something entirely different, it has the code {sku}.",
            "Order {order} contained only one {thing}, but two of them are on the packing slip.",
            "You sent the wrong size: the box says {sku}, my confirmation for {order} says another one.",
            "Somebody else's {thing} was in my parcel, the slip inside carries a name that I do not know.",
        ),
        detail=(
            "On the label inside it says {sku}, the serial is {serial}, and the outer box has {tracking} on it.",
            "I have not opened the inner packaging, so it can go straight back on your shelf.",
            "The confirmation of {day} lists the {model}, {colour}, quantity two, total {amount}.",
        ),
        finding=(
            "The pick list in {warehouse} shows that the shelf next to the {model} was scanned instead.",
            "One {thing} is still marked as to be packed, it was split off into a second shipment.",
            "The contents of {order} and of another customer's parcel were swapped at packing on {day}.",
        ),
        solved=(
            "The right {product} is reserved as {order2} and leaves on {eta}, the return label is in your inbox.",
            "I have booked a courier who brings the {colour} one and takes the other one along on {eta}.",
        ),
        unsolved=(
            "The {model} in {colour} is sold out, and I have no date yet for when it comes back.",
            "The return could not be created because of {error}, a colleague has to enter it by hand.",
        ),
    ),
    Issue(
        kind=ADDRESS_CHANGE,
        opening=(
            "I moved last week and order {order} still goes to my old flat, the new one is {street} in {city}.",
            "Could the parcel {tracking} be sent to a pickup shop? I am away for {days} days from {day} on.",
            "There is a typing error in the address of {order}, the postcode has to be {postcode}.",
            "Please deliver the {product} to my office instead, reception is staffed until six.",
        ),
        detail=(
            "The correct address reads {name}, {street}, {postcode} {city}, the name is on the letter box.",
            "The order is {order} and it was placed on {date} with the account {email}.",
            "If it has already left {warehouse}, a pickup shop in {city} would be just as good.",
        ),
        finding=(
            "The order {order} is being packed in {warehouse}, so the address can be changed for a short while.",
            "The parcel {tracking} has already been handed to {carrier}, only a redirection is possible now.",
            "The postcode {postcode} does not belong to {city} in our address data, that is why it was refused.",
        ),
        solved=(
            "The address is now {street}, {postcode} {city}, and the label has been printed again.",
            "{carrier} redirects {tracking} to the pickup shop, bring an identity card and the code {coupon}.",
        ),
        unsolved=(
            "{carrier} declines redirections for parcels of this value, so it will come back to us first.",
            "The change was rejected with {error} as the van is loaded, please refuse the parcel at the door.",
        ),
    ),
    Issue(
        kind=PAYMENT_DECLINED,
        opening=(
            "My card ending {card} is declined with {error} although my bank says that everything is fine.",
            "I cannot pay for the {product}, the confirmation in the banking app succeeds and then {error} appears.",
            "The voucher {coupon} is not accepted at the checkout, it is valid until {day} according to the mail.",
            "Three attempts to pay {amount} for {order} failed, and each left a reservation on my account.",
        ),
        detail=(
            "I tried it on my {device} and on the computer, with {version} of the app and in the browser.",
            "The cart holds one {product} for {amount}, the shipping address is in {city}.",
            "The bank's hotline told me that no request from you ever reached them on {day}.",
        ),
        finding=(
            "The issuer asks for a second confirmation, and the shop drops it with {error} after {minutes} seconds.",
            "The voucher {coupon} applies to full prices only, and the {thing} is reduced at the moment.",
            "Our fraud filter stopped the payment since the card and the parcel are in different countries.",
        ),
        solved=(
            "I have cleared the filter for {email}, please try again within {minutes} minutes.",
            "The payment link that I sent to {email} avoids the faulty step, and {coupon} is already applied.",
        ),
        unsolved=(
            "The decline comes from the bank's side as {error}, only they are able to lift it.",
            "Payments through this provider are disturbed at the moment, and I have no estimate for the repair.",
        ),
    ),
)
