"""Dialogues with lookalikes: two messages of a person, a later one on the same matter in other
words, and one on another matter that shares at least two words with them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Lookalike(NamedTuple):
    """Messages of a session, a message that continues it, and a decoy that begins another one."""

    messages: tuple[str, str]
    later: str
    decoy: str


_TEXT: Final = """
My order of running shoes has not arrived
The parcel was sent on Monday by courier
Still no delivery of the sneakers, where is the package now?
In which order should I do running and strength exercises?

The brakes of my bicycle squeal when it rains
I cleaned the rims and the pads already
Would new brake blocks stop the noise on wet days?
Is a bicycle tour possible in October when it rains so often?

I need a visa for Vietnam for three weeks
My passport is valid until next June
How long does the embassy take to issue the entry permit?
My next passport photo, may I wear glasses in it?

The battery of my phone is empty by noon
It is a two year old model with the latest update
Should I have the worn accumulator of the mobile replaced?
Which phone with a good battery should I buy for my mother?

Our cat refuses the new dry food
She is twelve and has kidney problems
The old pet still does not eat, should the vet see her?
Is dry food for dogs sold in your new shop?

I want to contest a parking fine
The sign was hidden behind a tree
What became of my objection to the ticket?
Where is free parking near the tree nursery?

My back hurts after sitting at the desk
The pain is worst in the evening
The ache in my spine is better since I stand more at work
Which desk fits into a small room and has drawers at the back?

The roof of the garden shed leaks
The felt has torn in the storm
Can I patch the hole in the hut's covering myself?
Which plants for a roof garden survive a storm?

My daughter wants to learn the violin
She is six and plays the recorder already
At what age do children start lessons on a string instrument?
Which films about a violin are good for my daughter's birthday?

The invoice shows the wrong VAT rate
Our company sits in Austria and you bill from Germany
Please send a corrected bill with the right tax
How do I write my first invoice as a freelance company?

The heating in the bathroom stays cold
I bled the radiator twice this week
No warmth there yet, is the thermostat valve stuck?
Which bathroom tiles stay nice without much cleaning this week?

I lost my bank card at the airport
I blocked it by phone right away
When will the replacement for the missing debit card come?
Is there a bank with an office at the airport of Lisbon?

My tomato plants have brown spots on the leaves
They stand on a balcony facing south
Is the fungus on my vegetables dangerous for the fruit?
Which plants for a balcony facing north have red leaves?

I would like to change my flight to Rome
The booking is for two people in May
What does it cost to fly to Italy a day earlier?
Can two people get married in Rome in May?

The printer prints pale stripes on every page
I cleaned the head and changed the cartridge
The ink is still faint after the new toner, what now?
How do I number every page and print the head of a letter?

My neighbour plays loud music at night
I talked to him twice without success
The noise next door goes on, should I call the landlord?
Which music is good for a night with a neighbour's children?

I am looking for a gluten free birthday cake
It is for twelve children on Saturday
Would a flourless chocolate tart suit the kids' party?
Is the museum free for children on Saturday?

The app logs me out every hour
I use it on an old tablet
The constant sign in is annoying, is a fix on its way?
Which app counts every hour that I work on a tablet?

My application for the scholarship was rejected
The letter says a document is missing
May I hand in the lacking paper and appeal the grant decision?
Write an application letter for a job as a gardener

Our wedding should take place at a lake
About eighty guests and a small budget
Which venue by the water is affordable for the marriage ceremony?
Which fish live in a small lake in Bavaria?

The car makes a grinding noise in second gear
It has run 140000 kilometres
Is the transmission broken or just the clutch?
How many kilometres can an electric car run with a full battery?

I got a rash from the new detergent
My arms itch since yesterday
Is my skin allergic to the washing powder?
Which new detergent for delicate wool did the test choose yesterday?

My flatmate does not pay his share of the rent
He is two months behind
How do I get the money that the lodger owes me?
Should I share my rent contract with two insurers?

I want to teach my dog to walk without pulling
He is a young retriever and weighs thirty kilos
The puppy still drags me along on the leash, what can I practise?
Which walk around the lake allows a dog without a lead?

The coffee machine shows error 8 and stops
I descaled it last week
It still breaks off with that fault before the espresso is made
Which coffee did the last week of the test show as fair trade?

I am writing a thesis about bees in cities
My professor wants a clearer research question
How do I narrow the topic on urban pollinators down?
Which cities should a professor of history visit?

Our swimming pool turned green overnight
The pump runs eight hours a day
Does more chlorine remove the algae from the water?
Is the public swimming pool open eight hours on Sunday?

I sleep badly and wake at three
I stopped drinking coffee in the afternoon
My insomnia is no better, would less light at night help?
Wake me at three in the afternoon with a song

The contract with my electricity supplier ends in June
They want to raise the price by ten percent
Which power company would be cheaper for me?
Write the contract for a June wedding band, price included

My son was bullied at school again
He does not want to go to the sports lesson
The other pupils keep teasing my child, whom should I talk to?
Which sports does the school offer, and does my son need shoes?

I need a new lens for portraits
My camera is a full frame model from 2019
Would 85 millimetres be right for photos of faces?
Which full frame tent model has a new zip?

The basement smells musty after the flood
We dried the walls for ten days
Is mould growing in the cellar, and how do I find it?
How do I insulate basement walls against sound in ten days?

I would like to donate my old clothes
There are three bags with winter coats
Where can I give the used jackets away?
Which winter coats fit old ladies three sizes smaller?

Our internet is slow in the evening
The router stands in the hall
The wifi speed drops every night, could the connection be shared?
Which evening shows about the internet are in the town hall?

My grandmother falls often at home
She lives alone on the second floor
Would an alarm bracelet make the flat safer for the old lady?
How often must the second floor be painted at home?

I plan to run a marathon in spring
So far I have run ten kilometres
How many weeks does the training for the long race take?
Which spring flowers can I plan for a garden ten metres long?

The package for my sister went to the wrong address
The label had an old street number
Can the misdirected parcel be sent on to her new flat?
What is the address and number of the registry for my sister's old car?

The landlord keeps my deposit
I moved out in March and the flat was clean
It is half a year now, when must the security money be paid back?
Where do I deposit clean glass bottles in March?

I burn everything in my new steel pan
I use olive oil and a gas stove
At which heat does food not stick to the skillet?
Which olive oil from the new harvest is best, and how is steel made?

My bees swarmed last weekend
The hive stands beside the orchard
The colony left again, how do I catch it?
Which apples from the orchard kept best last weekend at the market?

I want to leave the church to save tax
I was baptised in Hamburg
Which office handles the resignation, and what does it cost?
Which church in Hamburg has the tallest tower?

The screen of my watch is cracked
It fell on tiles in the bathroom
What does it cost to mend the broken display of the wearable?
Which screen protects the bathroom from view, and how do I watch tiles for cracks?

I have a question about my pension
I worked in France for six years
Do the years abroad count when I retire?
I have a question for the six years of French school

The rabbit hole in my lawn gets bigger
I fenced the vegetable bed
How do I get rid of the animals that dig up the grass?
Which vegetable gets bigger in shade, and what is the lawn for?

My insurance refuses to pay for the broken tooth
The dentist made a root treatment
May the policy reject the costs of the crown?
Which root vegetable should I refuse if a tooth is loose?

We want to adopt a child
We have been married for four years
What does the youth welfare office ask of future parents?
Which board games fit a child of four years?

The train was cancelled and I missed my connection
I had to take a taxi for 90 euros
Will the railway pay back the cab fare?
What does the train cost that I take to Prague, 90 euros?

My essay on Kafka needs a better ending
It has two thousand words already
How could I conclude the text about the writer?
How many words of an essay fit on two pages?
"""
_BLOCKS = [tuple(block.splitlines()) for block in _TEXT.strip().split("\n\n")]
LOOKALIKES: Final = [Lookalike((one, two), later, decoy) for one, two, later, decoy in _BLOCKS]
"""All dialogues; thresholds are chosen on the even ones and measured on the odd ones."""
